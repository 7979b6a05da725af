// Package capsule is what an NVMe host and a controller send each other over a fabric: commands, completions, and the
// data of those commands that are about the controller itself (NVM Express base specification 2.0, NVM Express over
// Fabrics, NVM command set). It does no I/O, and serves both ends: each format is appended from, and parsed to, the
// same type.
//
// All fields are little-endian. Lengths and offsets are in bytes, unless blocks or dwords are named. What Append
// writes may be illegal, and what Parse returns is what was there: only lengths are checked. To judge values is the
// business of controller and host.
package capsule

// Package layout says where the bytes of an FPDU stand on a stream: RFC 5044, section 4.
// It has the sizes of its parts and of the whole, the places of markers and the distances
// they carry, the CRC, and the MULPDU that an effective MSS leaves.
//
// Everything in it is a function of its arguments. A stream offset counts bytes since
// Full Operation began, markers included, so that markers stand at multiples of
// [MarkerInterval].
package layout

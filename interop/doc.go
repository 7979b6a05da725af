// Package interop holds the tests against other implementations: Linux's
// software iWARP driver, siw, in a throw-away guest under QEMU, and tshark.
//
// The tests that need the guest, tshark or a built iwarp command (IWARP_BIN) are
// behind the build tag "interop"; the script interop/run brings all of it
// together and is the way to start them. Those without the tag decode stored
// captures of siw's and iwarp's own traffic and need nothing. README.md says
// what is covered, how to look into a failure and what was learned of siw and
// tshark.
package interop

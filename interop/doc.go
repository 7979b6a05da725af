// Package interop holds the tests against another implementation: Linux's
// software iWARP driver, siw, in a throw-away guest under QEMU.
//
// The tests are behind the build tag "interop" and need the guest, a built
// iwarp command (IWARP_BIN) and a few of Debian's packages; the script
// interop/run brings all of it together and is the way to start them. README.md
// says what is covered, how to look into a failure and what was learnt of siw.
package interop

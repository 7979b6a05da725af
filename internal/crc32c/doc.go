// Package crc32c computes the CRC32c of MPA (RFC 5044, section 4.4; RFC 3385), by itself
// or while it copies.
//
// A CRC is the remainder of a division of polynomials over GF(2): the bytes are the
// coefficients of M(x), and the CRC is M(x)·x^32 mod P(x). Remainders allow a shortcut
// that is called folding. Let the message be A(x)·x^d + B(x), A being its first bytes and
// d the number of bits after them. A(x)·x^d may be replaced by A(x)·(x^d mod P(x)), which
// has the same remainder and is only 32 bits longer than A: it can be added to what
// follows, and A is done with. x^d mod P(x) is a constant for a constant d, and
// processors multiply such polynomials with one instruction (carry-less multiplication).
//
// Where the processor has that instruction for registers of 512 or 256 bits, and the operating
// system keeps these registers, 256 bytes are folded at a time, in four or eight registers that
// do not wait for each other: in those of 512 bits that is as fast as the bytes come from the
// cache, so that a copy that sums takes no longer than the copy alone. Elsewhere, and for few
// bytes, the CRC is that of package hash/crc32.
package crc32c

// Package recovery finds FPDUs in TCP segments that arrive in any order, overlap, are
// repeated, or are missing: RFC 5044, section 6. An MPA-aware TCP needs that, and so does
// a reader of captures. Where segments arrive in order, mpa.Reader is all it takes.
//
// A [Receiver] is given segments and reports each ULPDU as soon as it is whole and valid.
// [Resync] looks for the boundary of an FPDU in a piece of a stream of which nothing else
// is known.
//
// Like package mpa it does no I/O, and reads no clock.
package recovery

// Package mpa is Marker PDU Aligned framing for TCP: RFC 5044, with the
// enhanced connection establishment of RFC 6581.
//
// It is pure protocol. Nothing in it touches a socket, a goroutine, a lock or a
// clock: bytes come in, bytes come out, and time is a value that the caller
// passes in. It allocates memory for errors and startup machines only, never per FPDU.
//
// # Full Operation
//
// A [Writer] frames one direction and a [Reader] finds the frames again:
//
//	w := mpa.NewWriter(markers, crc)
//	out = w.Append(out, header, payload) // one FPDU around one ULPDU
//
//	r := mpa.NewReader(markers, crc)
//	f, n, err := r.Next(in) // f.ULPDU is verified before it is handed out
//
// layout.MULPDU, in package internal/layout, says how large a ULPDU may be for a given effective MSS.
//
// # Startup
//
// An [Initiator] sends the MPA Request Frame and reads the Reply; a [Responder]
// reads the Request and answers with [Responder.Accept] or [Responder.Reject]. Other
// dialects (see [Dialect]) use a Start Key instead, or add another frame, which Output
// returns. Both machines take bytes in any split and never one beyond the frame that
// they wait for: whatever follows belongs to the first FPDU, or to the consumer after a
// rejection. What the two ends agreed on is a [Negotiated] value.
//
// The codecs ([ParseStartup], [AppendStartup], [ParseEnhanced], [AppendEnhanced],
// [ParseStartKey], [AppendStartKey]) check lengths only and write any value, legal or
// not. The two machines judge what is legal.
//
// Private data is the ULP's. Package internal/ulpdata has codecs for what some ULPs are known
// to put there.
//
// # Errors
//
// Everything that MPA detects is an [*Error] with the RFC's code, the offset at
// which it was found and a hint at what to do about it. Startup failures are a
// [*StartupError] around one. RFC 5044, section 8: "Once MPA delivers an error of
// any type, it MUST NOT pass or deliver any additional FPDUs on that half
// connection": errors are sticky.
//
// In the code, [E06] and the like name requirements that docs/requirements.md
// lists.
package mpa

// Package conform is a conformance suite for iWARP peers in both roles: it talks to a
// live peer over TCP, byte by byte, and judges what the peer does by the documents.
//
// It uses packages mpa, ddp and rdmap to read and write frames, which write any value,
// legal or not, and no endpoint: what it expects comes from the documents and not from
// how our endpoint happens to behave.
//
// # Running it
//
// [Run] runs the cases that [Options] select against a [Peer] and hands each
// [Result] to a function. The command iwarp conform does so for peers on the network,
// and this package's own tests for our endpoint, and for broken variants of it.
//
// Beyond the startup it is the peer's application that makes the peer do something.
// [AppRping] is rdma-core's rping or ours: when a Send tells rping -s of a source
// buffer, it reads the buffer and says so by a Send; when another tells it of a sink,
// it writes the text back. rping -c is the other half of that.
//
// # Memory Windows
//
// No case is about Memory Windows as such: on the wire a window is an STag like any other, with rights and bounds of
// its own, and nothing tells the peer which it is; binding one is no message. The cases about STags, bounds, rights and
// invalidation judge windows wherever the peer's application advertises them, which neither rping does.
//
// # SCTP
//
// The cases of the group sctp are about DDP over SCTP (RFC 5043, and RFC 6581, section 7): with
// [Options.SCTP] they are run against the passive end of sessions, a listener in UDP (RFC
// 6951), and with [Options.SCTPListener] against the active one, over associations that are played chunk by chunk.
//
// # Verdicts
//
//	Pass           the peer keeps to the rule
//	Fail           it breaks it; Expected and Got say how
//	NotApplicable  the rule does not concern this peer, or is a SHOULD that the peer does not
//	               follow, or the case was not asked for
//	Inconclusive   something else went wrong before the dialogue came to the rule
//	NotAsked       the peer had stopped answering: a control question decides that, an
//	               ordinary startup after a case that failed without a word of the peer's
//
// # Cases of one's own
//
// A [Case] with a Play runs a script of package peer, and has the same dialogue, capture, verdict and reports as the cases
// of the suite. [Options.Cases] selects it. docs/peer.md shows how.
//
// # JSON
//
// [Report.WriteJSON] writes an object for each case on a line of its own, and the [Summary] on the last.
// docs/conform-json.md describes them.
//
// # Testing the suite
//
// Our endpoint passes every case in every dialect (TestEndpoint). A variant is our
// endpoint with something before it that breaks one rule on the wire; it names the
// rule, and the case that must catch it (variants_test.go). Both run in virtual time
// over connections in memory, so that waiting costs nothing.
//
// Codes such as Q13 are the project's requirement IDs, which docs/requirements.md
// lists.
package conform

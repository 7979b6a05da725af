// Package probe finds out what an iWARP responder speaks, by short connections
// that ask it one question each: which revisions and dialects of MPA startup it
// answers and how it refuses the others, how it negotiates, and which known
// implementation behaves like that.
//
// The questions are Requests that obey the rules of some dialect, and sound FPDUs
// without data: nothing that could harm a sane peer. The application of the peer does
// notice them: it sees connections that come up and are closed at once. A server that
// takes a single connection, such as rping without -P, ends at the first question;
// the report then has what was found so far.
package probe

// Package probe finds out what an iWARP responder speaks, by short connections
// that ask it one question each: which revisions and dialects of MPA startup it
// answers and how it refuses the others, how it negotiates, and which known
// implementation behaves like that.
//
// The questions are Requests that are within the rules of some dialect, and sound
// FPDUs without data: nothing that a sane peer could be harmed by. The peer's
// application does notice: it sees connections that come up and are closed again at
// once. A server that takes a single connection and ends, such as rping without -P,
// ends at the first question, and the report has what was found until then.
package probe

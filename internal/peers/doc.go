// Package peers is the one table of the iWARP implementations that are known: what
// each does, where that is known from, and how to get along with it.
//
// The package is data, with a few functions that read it. Whatever else speaks of a
// known implementation is a view of this table:
//
//	iwarp.Presets     the settings of Advice, each with its reason
//	internal/peersim  plays a peer as its Behavior says
//	internal/probe    compares Behavior with the answers of a responder
//
// The row of siw rests on measurements with the driver of Linux 6.1, the others on
// reading the drivers. Where neither shows what a peer does, its row has a plausible
// value, so that the peer can be played, and Assumed names the field.
package peers

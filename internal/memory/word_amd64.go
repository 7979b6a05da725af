//go:build !race

package memory

// Stores become visible on this processor in the order in which a thread makes them, and one of a word that is
// aligned at once. So a plain store after all others is all that whoever loads the word atomically needs; that of
// sync/atomic also waits until everybody sees them, which takes as long as the checks of a small segment. The race
// detector is to see one of sync/atomic.

func store64(to *uint64, word uint64) { *to = word }

func store32(to *uint32, word uint32) { *to = word }

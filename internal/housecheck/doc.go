// Package housecheck has the tests of the repository itself: which package may import which, that each requirement has
// a test, and that documents name what exists. It has no code of its own.
//
// They are apart from the tests of package iwarp, so that an edit of a document fails none of those.
package housecheck

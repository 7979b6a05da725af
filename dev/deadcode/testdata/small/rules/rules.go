// Package rules holds what is to be proved.
package rules

import "fmt"

// Used is run by the library.
func Used(n int) bool { return within(n) }

func within(n int) bool { return n < 3 }

// ByTable is run by the command, through a table.
func ByTable(n int) bool { return n > 1 }

// ByC is run by C.
func ByC(b []byte) bool { return len(b) > 1 }

// Dead is run by nobody.
func Dead(n int) bool { return n > 2 }

// A Kind is made by the library.
type Kind int

var _ fmt.Stringer = Kind(0)

// String is called through an interface.
func (k Kind) String() string { return "kind" }

// Dead is a method that nobody calls.
func (k Kind) Dead() bool { return k > 3 }

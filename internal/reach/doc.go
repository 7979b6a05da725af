// Command reach finds functions that the product does not run. A test that proves a
// requirement by such a function passes for ever, whatever the product does.
//
// The product is every command of the module and what the public packages named in
// [libraries] export. A function is reached if code that is reached refers to it, or
// if it implements a method of an interface for a type that is reached.
//
//	go run ./internal/reach
//
// It prints a line for each finding, and exits with 1 if there are any.
package main

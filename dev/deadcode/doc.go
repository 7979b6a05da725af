// Command deadcode finds functions that the product does not run. A test that proves a
// requirement by such a function passes for ever, whatever the product does.
//
// The product is every command of the module, what the package iwarp exports, and what the packages named in [forC]
// export to C. What other packages export counts only if one of those uses it: what is there for others' programs
// alone stands in [excused], with its reason. A function is reached if code that is reached refers to it, or
// if it implements a method of an interface for a type that is reached. What is assigned
// to the blank identifier without a call, as in _ = f, is no reference.
//
// It goes by what is mentioned, and does not see whether that is called: a function in a
// table that nobody looks at counts, and so does one in a branch that is never taken, and each method by which a
// type fits an interface, called or not. Nor does it see which lines of a function run, and of files that only some
// systems build it sees Linux's on amd64.
//
//	go -C dev run ./deadcode
//
// It prints a line for each finding, and exits with 1 if there are any.
package main

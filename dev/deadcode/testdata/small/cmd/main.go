// Command cmd runs another.
package main

import "example.com/small/rules"

func main() { run() }

func run() { _ = table["a"](1) }

var table = map[string]func(int) bool{"a": rules.ByTable}

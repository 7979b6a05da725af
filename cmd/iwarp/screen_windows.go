package main

import (
	"os"

	"golang.org/x/sys/windows"
)

// obeys has a console obey escape sequences, and reports whether it does: those before Windows 10 print them.
func obeys(console *os.File) bool {
	var mode uint32
	h := windows.Handle(console.Fd())
	return windows.GetConsoleMode(h, &mode) == nil &&
		windows.SetConsoleMode(h, mode|windows.ENABLE_VIRTUAL_TERMINAL_PROCESSING) == nil
}

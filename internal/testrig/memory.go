package testrig

import "github.com/goiwarp/iwarp/internal/mempipe"

// A Conn is that of package mempipe.
type Conn = mempipe.Conn

// Pipe is that of package mempipe.
func Pipe(nameA, nameB string) (a, b *Conn) { return mempipe.Pipe(nameA, nameB) }

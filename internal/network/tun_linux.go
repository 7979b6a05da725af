package network

import "github.com/goiwarp/iwarp/usertcp"

func openTUN(name string) (usertcp.Link, error) { return usertcp.OpenTUN(name) }

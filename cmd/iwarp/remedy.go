package main

import (
	"errors"
	"io/fs"
	"net"
	"syscall"
)

// listeners are the commands that wait for what another dials.
var listeners = map[string]string{
	"cat":   "iwarp cat --listen or iwarp serve",
	"cp":    "iwarp serve --dir",
	"disk":  "iwarp disk",
	"perf":  "iwarp perf --listen or iwarp serve",
	"rping": "iwarp rping -s or iwarp serve",
}

// remedy says what to do about an error of the network, where the system's text says no more than what has happened.
func remedy(command string, err error) string {
	var name *net.DNSError
	var dial *net.OpError
	switch {
	case errors.As(err, new(*ending)): // the command has said so itself
	case command == "cp" && errors.Is(err, fs.ErrNotExist):
		return "; check the name of the file to copy"
	case errors.Is(err, syscall.ECONNREFUSED) && listeners[command] != "":
		return "; nothing listens there: start " + listeners[command] + " on that host, and check the port"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "; nothing listens there: start the server first, and check the port"
	case errors.Is(err, syscall.ENETUNREACH), errors.Is(err, syscall.EHOSTUNREACH):
		return "; this host has no way there: check the address, and the network of this host"
	case errors.As(err, &dial) && dial.Op == "listen" && errors.Is(err, fs.ErrPermission):
		return "; choose a port from 1024 on: those below are for root"
	case errors.As(err, new(*fs.PathError)) && errors.Is(err, fs.ErrPermission):
		return "; ask its owner for access, or run this as a user who has it"
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return "; this host has no such address: leave it out to listen on all"
	case errors.Is(err, syscall.EADDRINUSE):
		return "; another program listens there: choose another port"
	case errors.As(err, &name) && name.IsNotFound:
		return "; check the name of the host"
	case errors.As(err, &dial) && dial.Op == "dial" && dial.Timeout():
		return "; nothing answers there: check the address, and whether a firewall drops what is sent to that port"
	}
	return ""
}

package main

import (
	"cmp"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"unicode"

	"github.com/goiwarp/iwarp/internal/rping"
)

// An address on the command line is checked before anything is done with it, by the rules here for all commands: what
// cannot be one is wrong usage, whereas a host that is not known, or cannot be reached, is no mistake of the command
// line's.

// wantPeer refuses the address of a peer, host:port, that cannot be one. option is where it stands, such as "perf:
// --connect".
func wantPeer(option, addr string) error { return wantAddr(option, addr, 1) }

// wantListen is wantPeer for an address to listen on, whose port may be 0.
func wantListen(option, addr string) error { return wantAddr(option, addr, 0) }

func wantAddr(option, addr string, least int) error {
	host, port, err := net.SplitHostPort(addr)
	if alone := cmp.Or(host, addr); least == 0 && isPort(alone) {
		return usage("%s: %q is not a host: expected HOST[:PORT] (\":%s\" means all addresses)", option, alone, alone)
	}
	if err != nil {
		return usage("%s: %w: expected HOST[:PORT]", option, err)
	}
	if err := wantPort(option, port, least); err != nil {
		return err
	}
	return wantHost(option, host)
}

// A peerWords is where a peer is: HOST, HOST:PORT, or HOST PORT as netcat has it.
type peerWords []string

// addr returns the address; it is empty without one.
func (w peerWords) addr(command string) (string, error) {
	switch len(w) {
	case 0:
		return "", nil
	case 1:
		return atDefault(w[0]), nil
	case 2:
		return net.JoinHostPort(w[0], w[1]), nil
	}
	return "", usage("%s: %.60q: expected HOST[:PORT], and nothing more", command, w[2])
}

// atDefault is an address with the port of all commands but disk, if it has none. An empty one stays.
func atDefault(addr string) string {
	if addr == "" {
		return ""
	}
	return withPort(addr, rping.DefaultPort)
}

// isPort reports whether the name of a host is the number of a port.
func isPort(host string) bool {
	_, err := strconv.ParseUint(host, 10, 16)
	return err == nil
}

// wantPort refuses a port that is neither a number nor the name of a service.
func wantPort(option, port string, least int) error {
	n, err := net.LookupPort("tcp", port) // no network is asked
	if err != nil || n < least {
		return usage("%s: port %.20q is not a number from %d to 65535", option, port, least)
	}
	return nil
}

// wantHost refuses a host of digits, dots and colons that is no IP address, and one with an empty label: no name has a
// last label of digits alone, and some resolvers take such a one for an address that nobody meant.
func wantHost(option, host string) error {
	last := host[strings.LastIndexByte(host, '.')+1:]
	_, number := strconv.ParseUint(last, 10, 64)
	odd := strings.ContainsAny(host, "[]/ ") || strings.ContainsFunc(host, unicode.IsControl)
	if !odd && !strings.Contains(host, ":") && !strings.Contains(host, "..") && number != nil {
		return nil
	}
	if _, err := netip.ParseAddr(host); err != nil {
		return usage("%s: %.60q is neither an IP address nor the name of a host", option, host)
	}
	return nil
}

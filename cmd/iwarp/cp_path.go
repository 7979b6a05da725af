package main

import (
	"net/netip"
	"path"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/goiwarp/iwarp/internal/transfer/message"
)

// remotePath takes HOST:PATH apart, if an argument is that: there is a colon, and no separator in front of it. The path
// is relative to the server's directory, also where it begins with a slash.
func remotePath(arg string) (host, at string, remote bool) {
	host, at, remote = splitRemote(arg)
	return host, cleanPath(at), remote
}

// splitRemote leaves the path as it is written.
func splitRemote(arg string) (host, at string, remote bool) {
	if inside, ok := strings.CutPrefix(arg, "["); ok {
		host, at, remote = strings.Cut(inside, "]:")
	} else {
		host, at, remote = strings.Cut(arg, ":")
	}
	if !remote || host == "" || strings.ContainsAny(host, `/\`) || isDrive(host) {
		return "", "", false
	}
	return host, at, true
}

// isDrive tells C:\FILE from HOST:PATH.
func isDrive(host string) bool { return runtime.GOOS == "windows" && len(host) == 1 }

// cleanPath leaves out slashes and dots that say nothing. What climbs stays, and is refused.
func cleanPath(at string) string {
	if slices.Contains(strings.Split(at, "/"), "..") {
		return at
	}
	at = path.Clean("/" + at)
	return strings.TrimPrefix(at, "/")
}

// slash ends what a path is copied to with a slash, if it is written as that of a directory.
func slash(arg, at string) string {
	if at != "" && (strings.HasSuffix(arg, "/") || strings.HasSuffix(arg, "/.")) {
		return at + "/"
	}
	return at
}

// wantHostPath refuses what has the form of HOST:PATH, and is to be something else: an address of IPv6 without
// brackets, or HOST:PORT:PATH.
func wantHostPath(arg string) error {
	if colon := strings.LastIndex(arg, ":"); colon > 0 {
		if at, err := netip.ParseAddr(arg[:colon]); err == nil && at.Is6() {
			return usage("cp: PATH: %q: an IPv6 address is in brackets: [%v]%s", arg, at, arg[colon:])
		}
	}
	host, at, remote := splitRemote(arg)
	if strings.HasPrefix(arg, "[") {
		host = "[" + host + "]"
	}
	port, rest, more := strings.Cut(at, ":")
	if _, err := strconv.ParseUint(port, 10, 16); remote && more && err == nil {
		return usage("cp: PATH: %q: give a port with -P %s %s:%s; for a file of that name use %s:./%s",
			arg, port, host, rest, host, at)
	}
	return nil
}

// wantPath refuses a path that no server has.
func wantPath(arg, at string) error {
	if at == "" {
		return nil
	}
	if err := message.CheckPath(at); err != nil {
		return usage("cp: PATH: %q: %w", arg, err)
	}
	return nil
}

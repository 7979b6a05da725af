package main

import (
	"crypto/tls"
	"io/fs"
	"os"
	"sync"
)

// A freshTLS is the configuration of who listens, from files that may be replaced while it does: certificates are
// renewed, and who runs a server is not to end its connections for that. The files are looked at, and not read, for
// each handshake; no signal is needed.
type freshTLS struct {
	flags   *tlsFlags
	command string
	told    func(error) // that files which have changed cannot be used; what they had before is used on

	mu   sync.Mutex
	seen []fs.FileInfo // the files when they were read last
	cfg  *tls.Config
}

// fresh reads the files, and has them read again when they change. nil is no TLS.
func (f *tlsFlags) fresh(command string, told func(error)) (*tls.Config, error) {
	t := &freshTLS{flags: f, command: command, told: told}
	t.seen = t.files() // before they are read: what changes meanwhile is read again
	var err error
	if t.cfg, err = f.server(command); t.cfg == nil || err != nil {
		return nil, err
	}
	outer := t.cfg.Clone()
	outer.GetConfigForClient = t.forClient
	return outer, nil
}

// forClient is the configuration for one handshake.
func (t *freshTLS) forClient(*tls.ClientHelloInfo) (*tls.Config, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.files()
	if same(t.seen, now) {
		return t.cfg, nil
	}
	t.seen = now
	cfg, err := t.flags.server(t.command)
	if err != nil { // also where one of two files is there already, and the other is to come
		t.told(err)
		return t.cfg, nil
	}
	t.cfg = cfg
	return cfg, nil
}

// files are the files as they are, nil for one that is not there.
func (t *freshTLS) files() (all []fs.FileInfo) {
	for _, name := range []string{t.flags.TLSCert, t.flags.TLSKey, t.flags.TLSCA} {
		info, err := os.Stat(name)
		if err != nil {
			info = nil
		}
		all = append(all, info)
	}
	return all
}

// same reports whether files are what they were.
func same(were, are []fs.FileInfo) bool {
	for i, was := range were {
		is := are[i]
		if was == nil || is == nil {
			if was != is {
				return false
			}
			continue
		}
		if !os.SameFile(was, is) || was.Size() != is.Size() || !was.ModTime().Equal(is.ModTime()) {
			return false
		}
	}
	return true
}

package main

import (
	"strings"
	"testing"
)

// TestWithPort: an address of IPv6 may be in brackets.
func TestWithPort(t *testing.T) {
	for addr, want := range map[string]string{"": ":7", "h": "h:7", "h:1": "h:1", "::1": "[::1]:7",
		"[::1]": "[::1]:7", "[::1]:1": "[::1]:1"} {
		if got := withPort(addr, 7); got != want {
			t.Errorf("%q: %q, want %q", addr, got, want)
		}
	}
}

// TestDefaultPort: a host alone is enough for every command that connects, and for those that listen.
func TestDefaultPort(t *testing.T) {
	for line, got := range map[string]func(*cli) string{
		"probe h":            func(c *cli) string { _ = c.Probe.check(); return c.Probe.Addr },
		"conform h":          func(c *cli) string { addr, _ := c.Conform.At.addr("conform"); return addr },
		"cat h":              func(c *cli) string { _ = c.Cat.checkOptions(); return c.Cat.Connect },
		"cat --connect h":    func(c *cli) string { _ = c.Cat.checkOptions(); return c.Cat.Connect },
		"cat --listen h":     func(c *cli) string { _ = c.Cat.checkOptions(); return c.Cat.Listen },
		"rping h":            func(c *cli) string { _ = c.Rping.takeAddress(); return c.Rping.hostPort() },
		"rping h 7174":       func(c *cli) string { _ = c.Rping.takeAddress(); return c.Rping.hostPort() },
		"rping -c -a h:7174": func(c *cli) string { _ = c.Rping.takeAddress(); return c.Rping.hostPort() },
		"rping -c -a h":      func(c *cli) string { _ = c.Rping.takeAddress(); return c.Rping.hostPort() },
		"serve h":            func(c *cli) string { return c.Serve.addr() },
	} {
		c, err := parsed(t, strings.Fields(line))
		if addr := got(c); err != nil || addr != "h:7174" {
			t.Errorf("%s: %q, %v", line, addr, err)
		}
	}
	if c, err := parsed(t, []string{"disk", "1M", "--listen", "h"}); err != nil || c.Disk.listen() != "h:4420" {
		t.Errorf("disk: %q, %v", c.Disk.listen(), err)
	}
	if d, err := parseDiskURL("disk: --list", "h"); err != nil || d.at != "h:4420" {
		t.Errorf("disk --list: %q, %v", d.at, err)
	}
}

package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"

	"github.com/goiwarp/iwarp/internal/testrig"
)

// TestNotify plays systemd: it is told when the service takes connections, and when it stops to.
func TestNotify(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("there are no datagram sockets with a path")
	}
	path := filepath.Join(t.TempDir(), "notify")
	systemd, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	testrig.Must(t, err)
	defer systemd.Close()
	testrig.Must(t, systemd.SetReadDeadline(time.Now().Add(testrig.Soon)))
	hears := func(want string) {
		t.Helper()
		b := make([]byte, 100)
		n, err := systemd.Read(b)
		if got := string(b[:n]); err != nil || got != want {
			t.Fatalf("%q, %v, want %q", got, err, want)
		}
	}
	t.Setenv(notifySocket, path)
	for _, args := range [][]string{{"serve", "127.0.0.1:0"}, {"disk", "1M", "--listen", "127.0.0.1:0"}} {
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- execute(ctx, args, streams{io.Discard, io.Discard}) }()
		hears("READY=1\nSTATUS=serving")
		stop()
		hears("STOPPING=1\nSTATUS=draining")
		if err := <-ended; !errors.Is(err, context.Canceled) {
			testrig.Must(t, err)
		}
	}
}

// TestDistributed: the options with which the units of systemd and the container start the command are ones that it has.
func TestDistributed(t *testing.T) {
	read := func(file, pattern string) string {
		t.Helper()
		text, err := os.ReadFile(filepath.Join("..", "..", "dist", file))
		testrig.Must(t, err)
		found := regexp.MustCompile(pattern).FindStringSubmatch(string(text))
		if found == nil {
			t.Fatalf("%s has no %s", file, pattern)
		}
		return found[1]
	}
	var inContainer []string
	testrig.Must(t, json.Unmarshal([]byte(read("Containerfile", `(?m)^CMD (.*)$`)), &inContainer))
	all := [][]string{inContainer}
	for command, file := range map[string]string{"serve": "iwarp.service", "disk": "iwarp-disk.service"} {
		variable := "IWARP_" + strings.ToUpper(command)
		all = append(all, append([]string{command},
			strings.Fields(read(file, `(?m)^Environment=.*\b`+variable+`=(.*?)"?$`))...))
		known := variables(commandNode(t, command))
		for _, set := range regexp.MustCompile(variable+`_[A-Z_]+`).FindAllString(read(file, `(?s)^(.*)$`), -1) {
			if !slices.Contains(known, set) {
				t.Errorf("%s: %s sets no option", file, set)
			}
		}
		if got := read(file, `(?m)^ExecStart=(.*)$`); got != "/usr/bin/iwarp "+command+" $"+variable {
			t.Errorf("%s: %s", file, got)
		}
	}
	for _, args := range all {
		parser, err := newParser(t.Context(), streams{io.Discard, io.Discard},
			kong.Exit(func(int) { t.Errorf("%q ends at once", args) }))
		testrig.Must(t, err)
		if _, err := parser.Parse(gathered(parser, args)); err != nil {
			t.Errorf("%q: %v", args, err)
		}
	}
}

// commandNode is the model of a command.
func commandNode(t *testing.T, name string) *kong.Node {
	t.Helper()
	parser, err := newParser(t.Context(), streams{io.Discard, io.Discard})
	testrig.Must(t, err)
	for _, c := range parser.Model.Children {
		if c.Name == name {
			return c
		}
	}
	t.Fatalf("there is no command %s", name)
	return nil
}

package main

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/goiwarp/iwarp/internal/testrig"
)

// TestExtcapCalls answers what Wireshark asks before it captures.
func TestExtcapCalls(t *testing.T) {
	for line, want := range map[string]string{
		"extcap --extcap-interfaces --extcap-version=4.0":                            "interface {value=iwarp}{display=iWARP, with DDP segments and findings}\n",
		"extcap --extcap-dlts --extcap-interface iwarp":                              "dlt {number=252}{name=UPPER_PDU}",
		"extcap --extcap-config --extcap-interface iwarp":                            "arg {number=1}{call=--file}",
		"extcap --extcap-interface iwarp --extcap-capture-filter 10.0.0.1:7174":      "",
		"extcap --extcap-interface iwarp --extcap-capture-filter tcp":                "an address or address:port is expected\n",
		"extcap --extcap-interface=iwarp --extcap-config --extcap-reload-option=any": "unknown flag --extcap-reload-option",
		"extcap --extcap-dlts --extcap-interface eth0":                               "extcap: --extcap-interface: there is iwarp alone",
		"extcap":         "people want iwarp extcap --install",
		"extcap --dir x": "extcap: --dir: it needs --install",
		"extcap --capture --extcap-interface iwarp --fifo x":                   "extcap: --device: choose an interface",
		"extcap --capture --extcap-interface iwarp --fifo x --file y --port 0": `extcap: --port: "0" is not a number from 1 to 65535`,
		"extcap --capture --extcap-interface iwarp --fifo /no/x --file y":      "extcap: --fifo: open /no/x: ",
		"extcap --capture --extcap-interface iwarp --fifo x --file y --extcap-capture-filter tcp": "extcap: --extcap-capture-filter: " +
			`"tcp": expected an address or address:port`,
	} {
		var out, errs bytes.Buffer
		run(strings.Fields(line), streams{&out, &errs})
		if got := out.String() + errs.String(); !strings.Contains(got, want) || want == "" && got != "" {
			t.Errorf("%s: %s, want %s", line, got, want)
		}
	}
}

// TestExtcapCapture writes what decode --export writes, of the ends that the filter names.
func TestExtcapCapture(t *testing.T) {
	const file = "../../interop/testdata/captures/siw-rping.pcap"
	dir := t.TempDir()
	for filter, some := range map[string]string{"": "", "host 192.168.77.2": "--filter=192.168.77.2"} {
		fifo, exported := filepath.Join(dir, "fifo"), filepath.Join(dir, "exported")
		testrig.Must(t, os.WriteFile(fifo, nil, 0o600))
		var out, errs bytes.Buffer
		args := []string{"extcap", "--capture", "--extcap-interface", "iwarp", "--fifo", fifo, "--file", file,
			"--extcap-capture-filter", filter}
		export := slices.DeleteFunc([]string{"decode", file, "--export", exported, some}, func(s string) bool { return s == "" })
		if run(args, streams{&out, &errs})+run(export, streams{io.Discard, &errs}) != statusFine || out.Len() > 0 {
			t.Fatalf("%s%s", &out, &errs)
		}
		got, err := os.ReadFile(fifo)
		testrig.Must(t, err)
		want, err := os.ReadFile(exported)
		testrig.Must(t, err)
		// but for the name of the program that has written them, which is as long
		if !bytes.Equal(bytes.Replace(got, []byte("iwarp extcap"), []byte("iwarp decode"), 1), want) || len(want) < 5000 {
			t.Errorf("%q: %d bytes, want %d", filter, len(got), len(want))
		}
	}
}

// TestExtcapInstall installs a script that calls this program.
func TestExtcapInstall(t *testing.T) {
	dir := t.TempDir()
	var out, errs bytes.Buffer
	if status := run([]string{"extcap", "--install", "--dir", dir}, streams{&out, &errs}); status != statusFine {
		t.Fatalf("status %d: %s", status, &errs)
	}
	name, _ := extcapScript("")
	script, err := os.ReadFile(filepath.Join(dir, name))
	testrig.Must(t, err)
	program, err := os.Executable()
	testrig.Must(t, err)
	if !strings.Contains(string(script), program) || !strings.Contains(string(script), " extcap ") {
		t.Errorf("%s", script)
	}
	if runtime.GOOS == "windows" {
		return
	}
	echo := filepath.Join(dir, "it's echo")
	testrig.Must(t, os.WriteFile(echo, []byte("#!/bin/sh\necho \"$@\"\n"), 0o700)) //nolint:gosec // a program
	_, quoted := extcapScript(echo)
	said, err := exec.CommandContext(t.Context(), "sh", "-c", quoted, "sh", "--extcap-interfaces").CombinedOutput()
	if err != nil || string(said) != "extcap --extcap-interfaces\n" {
		t.Errorf("%q (%v)", said, err)
	}
}

// TestExtcapFolder finds Wireshark's folder, the user's own if there is one.
func TestExtcapFolder(t *testing.T) {
	for folders, want := range map[string]string{
		"Temp:\t/tmp\nExtcap path:         \t/usr/lib/wireshark/extcap\n":                                       "/usr/lib/wireshark/extcap",
		"Personal Extcap path:\t/home/me/.local/lib/wireshark/extcap\nGlobal Extcap path:\t/usr/lib/w/extcap\n": "/home/me/.local/lib/wireshark/extcap, personal",
		"Global Extcap path:\t/usr/lib/w/extcap\nPersonal Extcap path:\tC:\\Users\\me\\extcap\r\n":              `C:\Users\me\extcap, personal`,
		"Temp:\t/tmp\n": "",
	} {
		dir, personal := extcapFolder([]byte(folders))
		if personal {
			dir += ", personal"
		}
		if dir != want {
			t.Errorf("%q, want %q", dir, want)
		}
	}
}

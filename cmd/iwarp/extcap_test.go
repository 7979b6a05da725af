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
		"extcap --extcap-dlts --extcap-interface eth0":                               "extcap: Wireshark runs this, and asks for the source iwarp",
		"extcap":         "to have it there, run iwarp extcap --install",
		"extcap --dir x": "extcap: --dir: it needs --install",
		"extcap --capture --extcap-interface iwarp --fifo x":                                      "extcap: --device: choose an interface",
		"extcap --capture --extcap-interface iwarp --fifo x --file y --port 0":                    `extcap: --port: "0" is not a number from 1 to 65535`,
		"extcap --capture --extcap-interface iwarp --fifo extcap_test.go --file ./extcap_test.go": "extcap: --fifo: extcap_test.go is the file that is read",
		"extcap --capture --extcap-interface iwarp --fifo /no/x --file y":                         "extcap: --fifo: open /no/x: ",
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

// TestExtcapFilter takes a filter that Wireshark's users write with a word before the address, as it is taken at the capture.
func TestExtcapFilter(t *testing.T) {
	var out, errs bytes.Buffer
	run([]string{"extcap", "--extcap-interface", "iwarp", "--extcap-capture-filter", "host 10.0.0.1"}, streams{&out, &errs})
	if got := out.String() + errs.String(); got != "" {
		t.Error(got)
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

// TestExtcapInstallFolders has a tshark name folders: the user's own have what can be installed, and what root must do is
// said where there is none.
func TestExtcapInstallFolders(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a script plays tshark")
	}
	name, _ := extcapScript("")
	for _, c := range []struct {
		folders, said string
		files         []string
	}{
		{"Extcap path:         \t/usr/lib/w/extcap\nPersonal Lua Plugins: \tHERE/lua\nMaxMind:\t/a\nMaxMind:\t/b\n",
			" extcap --install --dir /usr/lib/w/extcap\n", []string{"lua/iwarp_mpa2.lua"}},
		{"Personal Extcap path:\tHERE/own/extcap\nGlobal Extcap path:\t/usr/lib/w/extcap\n", "installed ",
			[]string{"own/extcap/" + name}},
		{"Temp:\t/tmp\n", "names no folder for extcap: name it by --dir\n", nil},
	} {
		bin, here := t.TempDir(), t.TempDir()
		fake := "#!/bin/sh\ncat <<'END'\n" + strings.ReplaceAll(c.folders, "HERE", here) + "END\n"
		testrig.Must(t, os.WriteFile(filepath.Join(bin, "tshark"), []byte(fake), 0o700)) //nolint:gosec // a program
		t.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
		var out, errs bytes.Buffer
		run([]string{"extcap", "--install"}, streams{&out, &errs})
		if said := out.String() + errs.String(); !strings.Contains(said, c.said) {
			t.Errorf("%q: %s", c.folders, said)
		}
		for _, file := range c.files {
			if info, err := os.Stat(filepath.Join(here, file)); err != nil || info.Size() < 50 {
				t.Errorf("%q: %v", c.folders, err)
			}
		}
	}
}

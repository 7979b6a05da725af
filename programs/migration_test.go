//go:build linux && interposer

package programs

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const (
	guestMemory = 128 << 20
	filledAt    = 0x2000000
	filledSize  = 32 << 20
	// firmware counts up at countedAt, from the first to the last of countedSize bytes and again.
	firmware    = "testdata/counting.hex"
	countedAt   = 0x10000
	countedSize = 0x80000
)

// TestMigration moves a guest from one QEMU to another over RDMA, live: it writes memory meanwhile. All its memory is
// compared.
func TestMigration(t *testing.T) {
	l := built(t)
	needs(t, "qemu-system-x86_64")
	var results []result
	for _, pinned := range []bool{false, true} {
		line := map[bool]string{false: "migrate rdma:127.0.0.1:PORT",
			true: "migrate rdma:127.0.0.1:PORT with rdma-pin-all"}[pinned]
		move := func(t *testing.T) { migrate(t, l, pinned) }
		results = append(results, ran(t, line, version("qemu-system-x86"), compared, move))
		captured(t, line, 2, move)
	}
	wantResults(t, "TestMigration", results)
}

func migrate(t *testing.T, l Library, pinned bool) {
	filled := filepath.Join(t.TempDir(), "filled")
	random := make([]byte, filledSize)
	_, _ = rand.NewChaCha8([32]byte{}).Read(random)
	if err := os.WriteFile(filled, random, 0o666); err != nil {
		t.Fatal(err)
	}
	source := guest(t, l, "-device", fmt.Sprintf("loader,file=%s,addr=%#x,force-raw=on", filled, filledAt))
	target := guest(t, l, "-incoming", "defer", "-S")
	uri := map[string]any{"uri": "rdma:127.0.0.1:" + freePort(t)}
	for _, m := range []*monitor{source, target} {
		m.do("migrate-set-capabilities", map[string]any{"capabilities": []any{map[string]any{"capability": "rdma-pin-all", "state": pinned}}}, nil)
	}
	for counted(t, source.memory(countedAt, countedSize), true) == 0 {
		time.Sleep(10 * time.Millisecond) // until the guest writes
	}
	target.do("migrate-incoming", uri, nil)
	source.do("migrate", uri, nil)
	var state struct{ Status string }
	for state.Status != "completed" {
		time.Sleep(20 * time.Millisecond)
		source.do("query-migrate", nil, &state)
		if state.Status == "failed" {
			t.Fatalf("the migration has %s\n%s\n%s", state.Status, source.out.String(), target.out.String())
		}
	}
	left, came := source.memory(0, guestMemory), target.memory(0, guestMemory)
	for i := 0; i < guestMemory; i += 4096 {
		if !bytes.Equal(left[i:][:4096], came[i:][:4096]) {
			t.Errorf("the page at %#x differs: %#x, and %#x at the source", i, came[i:][:8], left[i:][:8])
		}
	}
	if !bytes.Equal(came[filledAt:][:filledSize], random) {
		t.Error("what the guest was filled with differs")
	}
	before := counted(t, came[countedAt:][:countedSize], false)
	target.do("cont", nil, nil)
	for counted(t, target.memory(countedAt, countedSize), true) == before {
		time.Sleep(10 * time.Millisecond) // until the guest goes on where it was
	}
	target.do("stop", nil, nil)
	if after := counted(t, target.memory(countedAt, countedSize), false); after == before {
		t.Error("the guest does not go on")
	}
}

// counted returns how often the guest has counted its memory up. Each double word is counted up as often, or once more
// than all after it: but for a guest that is running.
func counted(t *testing.T, memory []byte, running bool) uint32 {
	t.Helper()
	first := binary.LittleEndian.Uint32(memory)
	last, steps := first, 0
	for ; len(memory) > 0 && !running; memory = memory[4:] {
		if n := binary.LittleEndian.Uint32(memory); n != last {
			steps++
			if n != first-1 || steps > 1 {
				t.Fatalf("%d after %d, and the first is %d", n, last, first)
			}
			last = n
		}
	}
	return first
}

// A monitor is a guest by its QMP.
type monitor struct {
	*process
	t    *testing.T
	conn net.Conn
	in   *json.Decoder
}

// guest starts a guest that only counts its memory up.
func guest(t *testing.T, l Library, options ...string) *monitor {
	t.Helper()
	dir := t.TempDir()
	socket, image := filepath.Join(dir, "qmp"), filepath.Join(dir, "firmware")
	if err := os.WriteFile(image, assembled(t, firmware, 0x10000), 0o666); err != nil {
		t.Fatal(err)
	}
	words := append(strings.Fields("qemu-system-x86_64 -accel tcg -M pc -m 128 -display none -nodefaults -no-user-config -bios "+image+" -qmp unix:"+socket+",server=on,wait=off"), options...)
	m := &monitor{process: startWords(t, l, nil, words...), t: t}
	for m.conn == nil {
		select {
		case <-m.done:
			t.Fatalf("QEMU has ended: %v\n%s", m.err, m.out.String())
		case <-time.After(20 * time.Millisecond):
		}
		m.conn, _ = net.Dial("unix", socket)
	}
	t.Cleanup(func() { _ = m.conn.Close() })
	m.in = json.NewDecoder(m.conn)
	m.do("qmp_capabilities", nil, nil)
	return m
}

// do has QEMU do something, and takes what it returns.
func (m *monitor) do(command string, arguments, result any) {
	m.t.Helper()
	request := map[string]any{"execute": command}
	if arguments != nil {
		request["arguments"] = arguments
	}
	if err := json.NewEncoder(m.conn).Encode(request); err != nil {
		m.t.Fatal(err)
	}
	for {
		var reply struct{ Return, Error json.RawMessage }
		if err := m.in.Decode(&reply); err != nil {
			m.t.Fatalf("%s: %v\n%s", command, err, m.out.String())
		}
		if reply.Error != nil {
			m.t.Fatalf("%s: %s\n%s", command, reply.Error, m.out.String())
		}
		if reply.Return != nil {
			if result != nil {
				if err := json.Unmarshal(reply.Return, result); err != nil {
					m.t.Fatal(err)
				}
			}
			return
		}
	}
}

// memory is the guest's, of physical addresses.
func (m *monitor) memory(at, size int) []byte {
	m.t.Helper()
	file := filepath.Join(m.t.TempDir(), "memory")
	m.do("pmemsave", map[string]any{"val": at, "size": size, "filename": file}, nil)
	out, err := os.ReadFile(file)
	if err != nil || len(out) != size {
		m.t.Fatalf("%d bytes: %v", len(out), err)
	}
	return out
}

// assembled reads lines of an address and bytes, all in hex, and a comment after a semicolon.
func assembled(t *testing.T, file string, size int) []byte {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	out := make([]byte, size)
	for line := range strings.Lines(string(text)) {
		code, _, _ := strings.Cut(line, ";")
		at, data, ok := strings.Cut(code, ":")
		if !ok {
			continue
		}
		var address int
		var bits []byte
		if _, err := fmt.Sscanf(at, "%x", &address); err == nil {
			_, err = fmt.Sscanf(strings.ReplaceAll(data, " ", ""), "%x", &bits)
			if err == nil {
				copy(out[address:], bits)
				continue
			}
		}
		t.Fatalf("%s: %q", file, line)
	}
	return out
}

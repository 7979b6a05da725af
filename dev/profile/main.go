// Command profile makes the profile by which the release command has the compiler optimize the program. It runs the
// benchmarks of posting, small and large, in all directions, and removes from what they leave the names of directories
// and files.
//
//	go -C dev run ./profile
package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"

	"github.com/google/pprof/profile"

	"github.com/goiwarp/iwarp/dev/internal/checkout"
)

// out is what the release command reads.
const out = "dev/release/iwarp.pgo"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "profile:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	if err := checkout.Enter(); err != nil {
		return err
	}
	measured, err := measure(ctx)
	if err != nil {
		return err
	}
	text, err := nameless(measured)
	if err != nil {
		return err
	}
	return os.WriteFile(out, text, 0o644)
}

// measure returns a profile of the CPU.
func measure(ctx context.Context) ([]byte, error) {
	dir, err := os.MkdirTemp("", "profile")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "cpu.pprof")
	test := exec.CommandContext(ctx, "go", "test", "-run=^$", "-bench=^BenchmarkPostSend$", "-benchtime=2s",
		"-cpuprofile="+file, "-o", filepath.Join(dir, "iwarp.test"), ".")
	test.Stdout, test.Stderr = os.Stderr, os.Stderr
	if err := test.Run(); err != nil {
		return nil, err
	}
	return os.ReadFile(file)
}

// nameless returns a profile without the files of the machine. The compiler reads functions and lines alone.
func nameless(measured []byte) ([]byte, error) {
	p, err := profile.ParseData(measured)
	if err != nil {
		return nil, err
	}
	for _, f := range p.Function {
		f.Filename = ""
	}
	for _, l := range p.Location {
		l.Mapping, l.Address = nil, 0
	}
	p.Mapping, p.Comments = nil, nil
	p.TimeNanos, p.DurationNanos = 0, 0
	var b bytes.Buffer
	err = p.Compact().Write(&b)
	return b.Bytes(), err
}

package main

import (
	"context"
	"errors"
	"os/exec"
	"path/filepath"
	"strings"
)

// vulnerable has govulncheck look at a program. It returns what was found, or why nothing was looked at: mostly that
// the database cannot be reached.
func (b *builder) vulnerable(ctx context.Context, p *program) string {
	_, err := command(ctx, filepath.Join(b.clone, "dev"), nil, "go", "tool", "govulncheck", "-mode=binary", p.path)
	exit := new(exec.ExitError)
	switch {
	case err == nil:
		return ""
	case errors.As(err, &exit) && exit.ExitCode() == vulnerabilitiesFound:
		return "the program has known vulnerabilities: run go -C dev tool govulncheck -C .. ./..."
	}
	first, _, _ := strings.Cut(err.Error(), "\n")
	return "govulncheck has not looked at the program: " + first
}

// vulnerabilitiesFound is the exit status of govulncheck.
const vulnerabilitiesFound = 3

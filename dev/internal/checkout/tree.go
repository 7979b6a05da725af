package checkout

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// module is the first line of go.mod at the top of the repository.
const module = "module github.com/goiwarp/iwarp\n"

// Top returns the top of the repository that the working directory is in.
func Top() (string, error) {
	here, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for dir := here; ; dir = filepath.Dir(dir) {
		if text, err := os.ReadFile(filepath.Join(dir, "go.mod")); err == nil &&
			strings.HasPrefix(string(text), module) {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("%s is not in the repository of iwarp: run this in a checkout of it", here)
		}
	}
}

// Enter makes the top of the repository the working directory. A tool calls it first: "go -C dev run ./TOOL" starts it
// in dev, and all paths that a tool takes or has are relative to the top.
func Enter() error {
	top, err := Top()
	if err != nil {
		return err
	}
	return os.Chdir(top)
}

// Unpack writes the files of a revision of the repository in the working directory into a directory, which it makes.
func Unpack(ctx context.Context, rev, dir string) error {
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	archive := dir + ".tar"
	defer os.Remove(archive)
	if err := run(ctx, "git", "archive", "--format=tar", "--output="+archive, "--end-of-options", rev); err != nil {
		return err
	}
	return run(ctx, "tar", "-xf", archive, "-C", dir)
}

func run(ctx context.Context, name string, args ...string) error {
	_, err := exec.CommandContext(ctx, name, args...).Output()
	if exit := new(exec.ExitError); errors.As(err, &exit) {
		return fmt.Errorf("%s %s: %w: %s", name, args[0], err, exit.Stderr)
	}
	return err
}

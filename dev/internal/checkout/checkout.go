// Package checkout finds the sources that the tools of dev work on. It enters the repository, unpacks earlier
// revisions, and says which sources something was measured with: the commit, and whether files are changed beside it.
package checkout

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
)

// A State is what figures keep of it.
type State struct {
	Commit   string `json:"commit"`
	Modified bool   `json:"modified,omitempty"` // there were changes beside the commit
}

// sources are what programs, their C parts and the guest are made of, wherever in the repository the working directory
// is. Changes of documents do not change what is measured, nor do figures that lie about.
var sources = []string{":/*.go", ":/*.s", ":/*.c", ":/*.h", ":/go.mod", ":/go.sum", ":/interop/siw-vm"}

// Here is the state of the working directory, with so many digits of the commit, or more if git needs these.
func Here(ctx context.Context, digits int) (State, error) {
	head, err := git(ctx, "rev-parse", fmt.Sprintf("--short=%d", digits), "HEAD")
	if err != nil {
		return State{}, err
	}
	changed, err := git(ctx, append([]string{"status", "--porcelain", "--untracked-files=all", "--"}, sources...)...)
	return State{Commit: head, Modified: changed != ""}, err
}

func git(ctx context.Context, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, "git", args...).Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w", args[0], err)
	}
	return strings.TrimSpace(string(out)), nil
}

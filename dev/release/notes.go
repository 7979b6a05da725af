package main

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"
)

// Notes are what the changelog says of its first version.
type notes struct {
	version string // such as "v0.1.0"
	when    string // the date, or that there is none yet
	text    string
}

var section = regexp.MustCompile(`(?ms)^## (\d+\.\d+\.\d+), ([^\n]+)\n+(.*?)\s*(\z|^## )`)

// readNotes reads the first section of a changelog.
func readNotes(changelog string) (notes, error) {
	m := section.FindStringSubmatch(changelog)
	if m == nil {
		return notes{}, errors.New(`CHANGELOG.md has no section "## VERSION, DATE"`)
	}
	return notes{"v" + m[1], m[2], m[3] + "\n"}, nil
}

// check returns an error if a tag is not the version of the changelog, or that has no date yet.
func (n notes) check(tag string) error {
	if tag != n.version {
		return fmt.Errorf("the tag is %s, and CHANGELOG.md begins with %s: change one of them", tag, n.version)
	}
	if _, err := time.Parse(time.DateOnly, n.when); err != nil {
		return fmt.Errorf("CHANGELOG.md says %q of %s: put the date there, as in 2026-01-31", n.when, n.version)
	}
	return nil
}

// unreleased is the version of a commit without a tag. It is lower than the release, and has the commit's time and
// name.
func (n notes) unreleased(committed time.Time, commit string) string {
	return fmt.Sprintf("%s-dev.%s.g%s", n.version, committed.UTC().Format("20060102150405"), commit[:12])
}

// relativeLink is one to a file of the repository.
var relativeLink = regexp.MustCompile(`\]\(([\w./#-]+)\)`)

// page returns the notes of a release. It stands outside of the repository, so that its links name the repository.
func (n notes) page(tag string) string {
	return relativeLink.ReplaceAllString(n.text, "]("+project+"/blob/"+tag+"/$1)")
}

// project is where the repository is published.
const project = "https://github.com/goiwarp/iwarp"

// tagged returns the tag of a release among those of a commit, or "".
func tagged(tags string) (tag string, err error) {
	for _, t := range strings.Fields(tags) {
		if !releaseTag.MatchString(t) {
			continue
		}
		if tag != "" {
			return "", fmt.Errorf("the commit has two tags of releases, %s and %s: remove one", tag, t)
		}
		tag = t
	}
	return tag, nil
}

var releaseTag = regexp.MustCompile(`^v\d+\.\d+\.\d+$`)

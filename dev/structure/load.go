package main

import (
	"context"
	"errors"
	"os"

	"golang.org/x/tools/go/packages"
)

// sources are the files of one revision.
type sources struct {
	ctx context.Context
	top string
}

// load reads packages of the module, with their types and without their tests.
func (s *sources) load(pattern string) ([]*packages.Package, error) {
	pkgs, err := packages.Load(&packages.Config{
		Context: s.ctx, Dir: s.top, Mode: packages.LoadSyntax | packages.NeedModule,
		// With -trimpath the cache has what an earlier run built in another directory.
		BuildFlags: []string{"-trimpath"}, Env: append(os.Environ(), "GOOS=linux", "GOARCH=amd64", "CGO_ENABLED=0"),
	}, pattern)
	if err != nil {
		return nil, err
	}
	if packages.PrintErrors(pkgs) > 0 || len(pkgs) == 0 {
		return nil, errors.New("the packages cannot be loaded")
	}
	return pkgs, nil
}

// one reads the package of a directory.
func (s *sources) one(dir string) (*packages.Package, error) {
	pkgs, err := s.load("./" + dir)
	if err != nil {
		return nil, err
	}
	return pkgs[0], nil
}

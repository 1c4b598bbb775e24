package config

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// RuntimeConfig says which API versions are served: named ones ("v1",
// "apps/v1"), those of a stability level ("api/ga", "api/beta", "api/alpha"),
// or all ("api/all"). The most specific entry decides; versions without an
// entry are served.
type RuntimeConfig map[string]string

const allVersions = "api/all"

var (
	generalVersion = regexp.MustCompile(`^v[0-9]+$`)
	betaVersion    = regexp.MustCompile(`^v[0-9]+beta[0-9]+$`)
)

// classOf is the key of a version's stability level.
func classOf(version string) string {
	switch {
	case generalVersion.MatchString(version):
		return "api/ga"
	case betaVersion.MatchString(version):
		return "api/beta"
	}
	return "api/alpha"
}

// Serves reports whether a version is served.
func (c RuntimeConfig) Serves(version schema.GroupVersion) bool {
	for _, key := range []string{version.String(), classOf(version.Version), allVersions} {
		if text, ok := c[key]; ok {
			on, _ := strconv.ParseBool(text) // validate has read it
			return on
		}
	}
	return true
}

// Missing refuses named versions that don't exist.
func (c RuntimeConfig) Missing(there []schema.GroupVersion) error {
	var errs []error
	for _, key := range slices.Sorted(maps.Keys(c)) {
		on, _ := strconv.ParseBool(c[key])
		version, err := schema.ParseGroupVersion(key)
		if on && version.Group != "api" && (err != nil || !slices.Contains(there, version)) {
			errs = append(errs, fmt.Errorf("--runtime-config=%s=%s: not supported: this server has no such API version", key, c[key]))
		}
	}
	return errors.Join(errs...)
}

func (c RuntimeConfig) validate() error {
	var errs []error
	some := c[allVersions] == ""
	for _, key := range slices.Sorted(maps.Keys(c)) {
		on, err := strconv.ParseBool(c[key])
		version, versionErr := schema.ParseGroupVersion(key)
		classes := []string{allVersions, "api/ga", "api/beta", "api/alpha"}
		switch {
		case err != nil:
			errs = append(errs, fmt.Errorf("--runtime-config=%s=%s: must be true or false", key, c[key]))
		case key == "api/v1" && on: // v1 by its path, as upstream's scripts write it
		case versionErr != nil || version.Version == "" || version.Group == "api" && !slices.Contains(classes, key):
			errs = append(errs, fmt.Errorf("--runtime-config=%s=%s: must name v1, GROUP/VERSION or one of %q", key, c[key], classes))
		}
		some = some || on
	}
	if !some {
		errs = append(errs, fmt.Errorf("--runtime-config=%s=false: this leaves no API to serve; enable the versions that you need", allVersions))
	}
	return errors.Join(errs...)
}

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

// RuntimeConfig says which versions of the API are served: those that are named
// ("v1", "apps/v1"), those of a kind ("api/ga", "api/beta", "api/alpha"), all
// ("api/all"). What says most decides; what nothing is said of is served.
type RuntimeConfig map[string]string

const allVersions = "api/all"

var (
	generalVersion = regexp.MustCompile(`^v[0-9]+$`)
	betaVersion    = regexp.MustCompile(`^v[0-9]+beta[0-9]+$`)
)

// classOf is the key of all versions that are as stable as one.
func classOf(version string) string {
	switch {
	case generalVersion.MatchString(version):
		return "api/ga"
	case betaVersion.MatchString(version):
		return "api/beta"
	}
	return "api/alpha"
}

// Serves tells whether a version is served.
func (c RuntimeConfig) Serves(version schema.GroupVersion) bool {
	for _, key := range []string{version.String(), classOf(version.Version), allVersions} {
		if text, ok := c[key]; ok {
			on, _ := strconv.ParseBool(text) // validate has read it
			return on
		}
	}
	return true
}

// Missing refuses to serve by name what is not there.
func (c RuntimeConfig) Missing(there []schema.GroupVersion) error {
	var errs []error
	for _, key := range slices.Sorted(maps.Keys(c)) {
		on, _ := strconv.ParseBool(c[key])
		version, err := schema.ParseGroupVersion(key)
		if on && version.Group != "api" && (err != nil || !slices.Contains(there, version)) {
			errs = append(errs, fmt.Errorf("--runtime-config=%s=%s: not supported, there is no such version here", key, c[key]))
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
		case key == "api/v1" && on: // v1 by its path, as scripts of upstream have it
		case versionErr != nil || version.Version == "" || version.Group == "api" && !slices.Contains(classes, key):
			errs = append(errs, fmt.Errorf("--runtime-config=%s=%s: must name v1, GROUP/VERSION or one of %q", key, c[key], classes))
		}
		some = some || on
	}
	if !some {
		errs = append(errs, fmt.Errorf("--runtime-config=%s=false: nothing would be served; name what is to be", allVersions))
	}
	return errors.Join(errs...)
}

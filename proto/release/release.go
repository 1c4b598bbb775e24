package release

import (
	"runtime"
	"runtime/debug"
	"strings"

	"k8s.io/apimachinery/pkg/version"
)

// Number is the project's own version; the linker sets it on a release.
var Number = "0.1.0-dev"

// The Kubernetes version whose API we speak: that of the k8s.io/api module we
// build on.
const (
	apiMajor      = "1"
	apiMinor      = "37"
	apiPatch      = "2"
	previousMinor = "36"

	// Kubernetes is its minor version, as programs and people write it; Previous is
	// the one before, whose objects and programs must work with it.
	Kubernetes = apiMajor + "." + apiMinor
	Previous   = apiMajor + "." + previousMinor
)

// mark is in every version of the project's programs, and in none of upstream's.
const mark = "+kctl-"

// IsOurs says that a GitVersion is one of the project's, whichever it is.
func IsOurs(version string) bool { return strings.Contains(version, mark) }

// Version is what /version and --version say. GitVersion is upstream's API
// level with our release as build metadata, so that clients compare it
// correctly.
func Version() version.Info {
	info := version.Info{
		Major:      apiMajor,
		Minor:      apiMinor,
		GitVersion: "v" + apiMajor + "." + apiMinor + "." + apiPatch + mark + Number,
		GoVersion:  runtime.Version(),
		Compiler:   runtime.Compiler,
		Platform:   runtime.GOOS + "/" + runtime.GOARCH,
	}
	build, ok := debug.ReadBuildInfo()
	if !ok {
		return info
	}
	for _, s := range build.Settings {
		switch s.Key {
		case "vcs.revision":
			info.GitCommit = s.Value
		case "vcs.time":
			info.BuildDate = s.Value
		case "vcs.modified":
			info.GitTreeState = map[string]string{"true": "dirty", "false": "clean"}[s.Value]
		}
	}
	return info
}

package manifest

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"k8s.io/utils/clock"

	"kctl/apiserver/internal/admission/configuration"
	"kctl/apiserver/internal/configfile"
	"kctl/proto/core"
)

// Plugin is an admission plugin that takes manifests.
type Plugin struct {
	Name string
	// Directory is what its configuration names; "" for none.
	Directory func(files configuration.Files, plugin string) (string, error)
	// Kinds are those of the objects in the directory.
	Kinds []string
	// Apply makes the objects those that are in force.
	Apply func([]core.Object)
}

// Options are what following a directory needs.
type Options struct {
	Files   configuration.Files
	Metrics prometheus.Registerer
	Clock   clock.WithTicker
	Logger  *zap.Logger
}

// Follow applies the objects in the directory that the plugin's configuration names, and returns what
// applies its changes; nil if it names none.
func (p Plugin) Follow(o Options) (*configfile.Follower, error) {
	path, err := p.directory(o.Files)
	if err != nil || path == "" {
		return nil, err
	}
	d := Directory{Path: path, Kinds: p.Kinds}
	var files []file
	read := func() (content []byte, err error) {
		files, err = d.files()
		return contentOf(files), err
	}
	apply := func([]byte) error { // of what was read last
		objects, err := d.objects(files)
		if err == nil {
			p.Apply(objects)
		}
		return err
	}
	content, err := read()
	if err == nil {
		err = apply(content)
	}
	if err != nil {
		return nil, fmt.Errorf("manifests of %s: %w", p.Name, err)
	}
	metrics := configfile.NewMetrics("manifest_admission", content,
		prometheus.WrapRegistererWith(prometheus.Labels{"plugin": p.Name}, o.Metrics))
	metrics.Loaded(o.Clock.Now())
	return &configfile.Follower{Path: path, Read: read, Content: content, Apply: apply, Clock: o.Clock, Logger: o.Logger, Metrics: metrics},
		nil
}

// directory is the directory that the plugin's configuration names; "" for none.
func (p Plugin) directory(files configuration.Files) (string, error) {
	path, err := p.Directory(files, p.Name)
	if err != nil {
		return "", err
	}
	fail := func(cause string) error {
		return fmt.Errorf("configuration of %s: staticManifestsDir: Invalid value: %q: %s", p.Name, path, cause)
	}
	switch info, err := os.Stat(path); {
	case path == "":
		return "", nil
	case !filepath.IsAbs(path):
		return "", fail("must be an absolute file path")
	case err != nil:
		return "", fail("unable to read: " + err.Error())
	case !info.IsDir():
		return "", fail("must be a directory")
	}
	return path, nil
}

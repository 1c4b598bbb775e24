package images

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// Spec says what an image consists of.
type Spec struct {
	Name       string // in the registry: "demo"
	Binary     string // file name of the static binary, and its path below / in the image
	Entrypoint []string
	Cmd        []string
	User       string // "" for root
	Ports      []string
}

// Specs are the images of the project: the sandbox's and the one to try things
// with.
var Specs = []Spec{
	{Name: "pause", Binary: "pause", Entrypoint: []string{"/pause"}, User: "65535:65535"},
	{Name: "demo", Binary: "demo", Entrypoint: []string{"/demo"}, Cmd: []string{"serve"}, User: "65532:65532", Ports: []string{"8080/tcp"}},
}

// Build makes the image of spec from the binary in binDir. The same binary
// gives the same digest.
func Build(spec Spec, binDir string) (v1.Image, error) {
	binary, err := os.ReadFile(filepath.Join(binDir, spec.Binary))
	if err != nil {
		return nil, fmt.Errorf("image %s: %w", spec.Name, err)
	}
	content, err := rootfs(spec, binary)
	if err != nil {
		return nil, fmt.Errorf("image %s: %w", spec.Name, err)
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(content)), nil
	}, tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, fmt.Errorf("image %s: layer: %w", spec.Name, err)
	}
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	if image, err = mutate.AppendLayers(image, layer); err != nil {
		return nil, fmt.Errorf("image %s: %w", spec.Name, err)
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, fmt.Errorf("image %s: %w", spec.Name, err)
	}
	config = config.DeepCopy()
	config.OS, config.Architecture = runtime.GOOS, runtime.GOARCH
	config.Config = v1.Config{
		Entrypoint: spec.Entrypoint, Cmd: spec.Cmd, User: spec.User, WorkingDir: "/",
		Env:          []string{"PATH=/"},
		ExposedPorts: map[string]struct{}{},
	}
	for _, p := range spec.Ports {
		config.Config.ExposedPorts[p] = struct{}{}
	}
	return mutate.ConfigFile(image, config)
}

// rootfs is the image's file system as a tar: the binary, and the few files
// and folders that programs look for.
func rootfs(spec Spec, binary []byte) ([]byte, error) {
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	files := []struct {
		name string
		mode int64
		data []byte
	}{
		{"etc/", 0o755, nil},
		{"etc/passwd", 0o644, []byte("root:x:0:0:root:/:/sbin/nologin\nnonroot:x:65532:65532:nonroot:/:/sbin/nologin\n")},
		{"etc/group", 0o644, []byte("root:x:0:\nnonroot:x:65532:\n")},
		{"tmp/", 0o1777, nil},
		{path.Base(spec.Binary), 0o755, binary},
	}
	for _, f := range files {
		h := &tar.Header{Name: f.name, Mode: f.mode, Size: int64(len(f.data)), ModTime: time.Unix(0, 0), Typeflag: tar.TypeReg}
		if f.data == nil {
			h.Typeflag = tar.TypeDir
		}
		if err := w.WriteHeader(h); err != nil {
			return nil, fmt.Errorf("write %s: %w", f.name, err)
		}
		if _, err := w.Write(f.data); err != nil {
			return nil, fmt.Errorf("write %s: %w", f.name, err)
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return buf.Bytes(), nil
}

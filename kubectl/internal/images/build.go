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
	Name       string   // in the registry: "demo"
	Binary     string   // file name of the static binary, and its path below / in the image
	Also       []string // further binaries
	Dirs       []string // folders that User owns, for volumes to be mounted on
	Entrypoint []string
	Cmd        []string
	User       string // "" for root
	Ports      []string
}

// Specs are the images of the project: the sandbox's, and one to try things
// with.
var Specs = []Spec{
	{Name: "pause", Binary: "pause", Entrypoint: []string{"/pause"}, User: "65535:65535"},
	{Name: "demo", Binary: "demo", Entrypoint: []string{"/demo"}, Cmd: []string{"serve"}, User: nonroot, Ports: []string{"8080/tcp"}},
}

// nonroot is the user in the images: a number, because names are unknown
// outside the image.
const (
	nonroot = "65532:65532"
	ownerID = 65532
)

// healthcheck is in every image whose health a container engine checks.
const healthcheck = "healthcheck"

// ControlPlane are the images that deploy/compose runs. Volumes take the owner of
// the folders that they are mounted on.
var ControlPlane = []Spec{
	{Name: "etcd", Binary: "etcd", Also: []string{healthcheck, "etcdctl", "etcdutl"}, Entrypoint: []string{"/etcd"}, User: nonroot,
		Dirs: []string{"var/lib/etcd", "backup"}},
	{Name: "apiserver", Binary: "apiserver", Also: []string{healthcheck}, Entrypoint: []string{"/apiserver"}, User: nonroot,
		Ports: []string{"6443/tcp"}},
	{Name: "scheduler", Binary: "scheduler", Also: []string{healthcheck}, Entrypoint: []string{"/scheduler"}, User: nonroot,
		Ports: []string{"10259/tcp"}},
	{Name: "balancer", Binary: "balancer", Also: []string{healthcheck}, Entrypoint: []string{"/balancer"}, User: nonroot,
		Ports: []string{"6443/tcp"}},
	{Name: "kctl", Binary: "kctl", Entrypoint: []string{"/kctl"}, User: nonroot, Dirs: []string{"etc/kctl"}},
}

// build makes the image of spec from the binary in binDir. The same binary
// gives the same digest.
func build(spec Spec, binDir string) (v1.Image, error) {
	content, err := rootfs(spec, binDir)
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
		Entrypoint:   spec.Entrypoint,
		Cmd:          spec.Cmd,
		User:         spec.User,
		WorkingDir:   "/",
		Env:          []string{"PATH=/"},
		ExposedPorts: map[string]struct{}{},
	}
	for _, p := range spec.Ports {
		config.Config.ExposedPorts[p] = struct{}{}
	}
	return mutate.ConfigFile(image, config)
}

// file is one entry of an image's file system; without data it is a folder.
type file struct {
	name  string
	mode  int64
	owner int
	data  []byte
}

// rootfs is the image's file system as a tar: the binaries, and the few files
// and folders that programs look for.
func rootfs(spec Spec, binDir string) ([]byte, error) {
	files := []file{
		{name: "etc/", mode: 0o755},
		{name: "etc/passwd", mode: 0o644, data: []byte("root:x:0:0:root:/:/sbin/nologin\nnonroot:x:65532:65532:nonroot:/:/sbin/nologin\n")},
		{name: "etc/group", mode: 0o644, data: []byte("root:x:0:\nnonroot:x:65532:\n")},
		{name: "tmp/", mode: 0o1777},
	}
	for _, dir := range spec.Dirs {
		files = append(files, file{name: dir + "/", mode: 0o700, owner: ownerID})
	}
	for _, name := range append([]string{spec.Binary}, spec.Also...) {
		binary, err := os.ReadFile(filepath.Join(binDir, name))
		if err != nil {
			return nil, err
		}
		files = append(files, file{name: path.Base(name), mode: 0o755, data: binary})
	}
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	for _, f := range files {
		h := &tar.Header{
			Name: f.name, Mode: f.mode, Uid: f.owner, Gid: f.owner, Size: int64(len(f.data)),
			ModTime: time.Unix(0, 0), Typeflag: tar.TypeReg,
		}
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

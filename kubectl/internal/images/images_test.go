package images

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// binaries writes a file for each image's binary.
func binaries(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, s := range Specs {
		if err := os.WriteFile(filepath.Join(dir, s.Binary), []byte("binary of "+s.Name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestServedImagesCanBePulled(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	listener.Close()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- Serve(ctx, address, binaries(t), t.TempDir()) }()
	for Ready(ctx, address) != nil {
		select {
		case err := <-done:
			t.Fatal(err)
		default:
		}
	}
	for _, spec := range Specs {
		ref, err := name.ParseReference(address+"/"+spec.Name, name.Insecure)
		if err != nil {
			t.Fatal(err)
		}
		image, err := remote.Image(ref)
		if err != nil {
			t.Fatal(err)
		}
		check(t, image, spec)
	}
	cancel()
	if err := <-done; err != nil {
		t.Errorf("after its context ended: %v", err)
	}
}

func check(t *testing.T, image v1.Image, spec Spec) {
	t.Helper()
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if config.OS != "linux" || fmt.Sprint(config.Config.Entrypoint) != fmt.Sprint(spec.Entrypoint) || config.Config.User != spec.User {
		t.Errorf("%s: %+v", spec.Name, config.Config)
	}
	files := tar.NewReader(mutate.Extract(image))
	for {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			t.Errorf("%s: no %s in the image", spec.Name, spec.Binary)
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if header.Name == spec.Binary {
			data, _ := io.ReadAll(files)
			if string(data) != "binary of "+spec.Name || header.Mode&0o111 == 0 {
				t.Errorf("%s: %q, mode %o", spec.Name, data, header.Mode)
			}
			return
		}
	}
}

func TestSameBinarySameDigest(t *testing.T) {
	dir := binaries(t)
	var digests []v1.Hash
	for range 2 {
		image, err := Build(Specs[0], dir)
		if err != nil {
			t.Fatal(err)
		}
		digest, err := image.Digest()
		if err != nil {
			t.Fatal(err)
		}
		digests = append(digests, digest)
	}
	if digests[0] != digests[1] {
		t.Errorf("%s and %s", digests[0], digests[1])
	}
}

func TestWriteAll(t *testing.T) {
	dir := t.TempDir()
	if err := WriteAll(binaries(t), dir); err != nil {
		t.Fatal(err)
	}
	for _, spec := range Specs {
		image, err := tarball.ImageFromPath(filepath.Join(dir, spec.Name+".tar"), nil)
		if err != nil {
			t.Fatal(err)
		}
		check(t, image, spec)
	}
	if err := WriteAll(t.TempDir(), dir); err == nil {
		t.Error("images were written without binaries")
	}
}

func TestServeOnlyOnLoopback(t *testing.T) {
	for _, address := range []string{"0.0.0.0:5000", "192.0.2.1:5000", "nonsense"} {
		if err := Serve(t.Context(), address, binaries(t), t.TempDir()); err == nil {
			t.Errorf("served on %s", address)
		}
	}
}

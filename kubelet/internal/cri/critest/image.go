package critest

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"strings"
)

type object = map[string]any

// Image describes an image to build from the machine's static busybox.
type Image struct {
	Name       string
	Entrypoint []string
	User       string            // as in a Dockerfile
	Files      map[string]string // more files by path
	Labels     map[string]string
}

// imageTar is an OCI archive of a busybox image that runs command.
func imageTar(name string, command ...string) ([]byte, error) {
	return Image{Name: name, Entrypoint: command}.Archive()
}

// blobs are the parts of an image in a registry.
type blobs struct {
	manifest, config, layer []byte
}

const manifestType = "application/vnd.oci.image.manifest.v1+json"

func (i Image) blobs() (blobs, error) {
	layer, err := i.layer()
	if err != nil {
		return blobs{}, err
	}
	config := mustJSON(object{
		"architecture": runtime.GOARCH,
		"os":           "linux",
		"config": object{
			"Entrypoint": i.Entrypoint,
			"Env":        []string{"PATH=/bin"},
			"User":       i.User,
			"Labels":     i.Labels,
		},
		"rootfs": object{"type": "layers", "diff_ids": []string{digest(layer)}},
	})
	manifest := mustJSON(object{
		"schemaVersion": 2,
		"mediaType":     manifestType,
		"config":        descriptor("application/vnd.oci.image.config.v1+json", config),
		"layers":        []object{descriptor("application/vnd.oci.image.layer.v1.tar", layer)},
	})
	return blobs{manifest: manifest, config: config, layer: layer}, nil
}

// Archive is the image as an OCI archive, for Import.
func (i Image) Archive() ([]byte, error) {
	b, err := i.blobs()
	if err != nil {
		return nil, err
	}
	entry := descriptor(manifestType, b.manifest)
	entry["annotations"] = object{"io.containerd.image.name": i.Name}
	index := mustJSON(object{"schemaVersion": 2, "manifests": []object{entry}})

	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, f := range []struct {
		name    string
		content []byte
	}{
		{"oci-layout", []byte(`{"imageLayoutVersion":"1.0.0"}`)},
		{"index.json", index},
		{blobPath(b.manifest), b.manifest},
		{blobPath(b.config), b.config},
		{blobPath(b.layer), b.layer},
	} {
		if err := writeFile(w, f.name, f.content, 0o644); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

func (i Image) layer() ([]byte, error) {
	busybox, err := exec.LookPath("busybox")
	if err != nil {
		return nil, err
	}
	program, err := os.ReadFile(busybox)
	if err != nil {
		return nil, err
	}
	applets, err := exec.Command(busybox, "--list").Output()
	if err != nil {
		return nil, fmt.Errorf("listing busybox's applets: %w", err)
	}
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, dir := range []string{"bin/", "etc/", "dev/", "proc/", "sys/", "tmp/", "root/"} {
		mode := int64(0o755)
		if dir == "tmp/" {
			mode = 0o1777
		}
		if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: dir, Mode: mode}); err != nil {
			return nil, err
		}
	}
	for name, content := range i.files() {
		if err := writeFile(w, name, []byte(content), 0o644); err != nil {
			return nil, err
		}
	}
	if err := writeFile(w, "bin/busybox", program, 0o755); err != nil {
		return nil, err
	}
	if err := writeLinks(w, strings.Fields(string(applets))); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// writeLinks names busybox by each of its applets.
func writeLinks(w *tar.Writer, applets []string) error {
	for _, applet := range applets {
		if applet == "busybox" {
			continue
		}
		link := &tar.Header{Typeflag: tar.TypeSymlink, Name: "bin/" + applet, Linkname: "busybox", Mode: 0o777}
		if err := w.WriteHeader(link); err != nil {
			return err
		}
	}
	return nil
}

// files are those beside busybox.
func (i Image) files() map[string]string {
	files := map[string]string{
		"etc/passwd": "root:x:0:0:root:/root:/bin/sh\nweb:x:1000:1000::/tmp:/bin/sh\n",
		"etc/group":  "root:x:0:\nweb:x:1000:\nextra:x:2000:web\n",
	}
	for name, content := range i.Files {
		files[strings.TrimPrefix(path.Clean(name), "/")] = content
	}
	return files
}

func writeFile(w *tar.Writer, name string, content []byte, mode int64) error {
	if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: mode, Size: int64(len(content))}); err != nil {
		return err
	}
	_, err := w.Write(content)
	return err
}

func descriptor(mediaType string, content []byte) object {
	return object{"mediaType": mediaType, "digest": digest(content), "size": len(content)}
}

func digest(content []byte) string {
	sum := sha256.Sum256(content)
	return "sha256:" + hex.EncodeToString(sum[:])
}

func blobPath(content []byte) string {
	return filepath.Join("blobs", "sha256", strings.TrimPrefix(digest(content), "sha256:"))
}

func mustJSON(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // literals in this file
	}
	return b
}

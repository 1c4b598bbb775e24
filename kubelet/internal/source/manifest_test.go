package source

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	"k8s.io/utils/clock"

	"kctl/proto/core"
)

func TestManifestsThatAreRefused(t *testing.T) {
	for text, want := range map[string]string{
		"":                                      "empty",
		"[":                                     "neither YAML nor JSON",
		"apiVersion: apps/v1\nkind: Deployment": "apiVersion",
		"apiVersion: v1\nkind: Service":         "kind",
		manifest + "    imagee: x\n":            "imagee",
		strings.Replace(manifest, "name: web", "name: _", 1):                                                     "metadata.name",
		strings.Replace(manifest, "name: web", "name: web\n  uid: ../../etc", 1):                                 "metadata.uid",
		strings.Replace(manifest, "spec:", "spec:\n  serviceAccountName: x", 1):                                  "service accounts",
		strings.Replace(manifest, "spec:", "spec:\n  serviceAccount: x", 1):                                      "service accounts",
		strings.Replace(manifest, "image: registry.example/app:1", "tty: true", 1):                               "image is required",
		strings.Replace(manifest, "spec:", "spec:\n  volumes: [{name: ../../v}]", 1):                             "volume name",
		strings.Replace(manifest, "spec:", "spec:\n  volumes: [{name: v}, {name: v}]", 1):                        "duplicated",
		strings.Replace(manifest, "spec:", "spec:\n  ephemeralContainers: [{name: ../../../../x, image: i}]", 1): "ephemeralContainers",
		strings.Replace(manifest, "spec:", "spec:\n  restartPolicy: always",
			1): `spec.restartPolicy: Unsupported value: "always": supported values: "Always"`,
		strings.Replace(manifest, "spec:", "spec:\n  dnsPolicy: clusterFirst",
			1): `spec.dnsPolicy: Unsupported value: "clusterFirst"`,
		strings.Replace(manifest, "image:", "imagePullPolicy: never\n    image:",
			1): `imagePullPolicy: Unsupported value: "never"`,
		strings.Replace(manifest, "image:", "restartPolicy: onFailure\n    image:",
			1): `restartPolicy: Unsupported value: "onFailure"`,
		strings.Replace(manifest, "image:", "terminationMessagePolicy: Logs\n    image:",
			1): `terminationMessagePolicy: Unsupported value: "Logs"`,
		strings.Replace(manifest, "image:", "ports: [{containerPort: 53, protocol: udp}]\n    image:",
			1): `ports.protocol: Unsupported value: "udp"`,
		strings.Replace(manifest, "image:", "volumeMounts: [{name: data, mountPath: /data}]\n    image:",
			1): `volumeMounts.name: Not found: "data"`,
		strings.Replace(manifest, "100m", "1e999999999", 1):                                                                              "out of range",
		strings.Replace(manifest, "100m", "'1e9999999'", 1):                                                                              "out of range",
		strings.Replace(manifest, "spec:", "spec:\n  imagePullSecrets: [{name: x}]", 1):                                                  "objects of the API",
		strings.Replace(manifest, "spec:", "spec:\n  volumes: [{name: v, persistentVolumeClaim: {claimName: c}}]", 1):                    "objects of the API",
		strings.Replace(manifest, "spec:", "spec:\n  volumes: [{name: v, projected: {sources: [{serviceAccountToken: {path: t}}]}}]", 1): "objects of the API",
	} {
		pods, err := decodePods([]byte(text))
		for _, pod := range pods {
			if err == nil {
				err = complete(pod, origin{source: core.FileSource, location: "/x", nodeName: "n"})
			}
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want one about %s", text, err, want)
		}
	}
	if _, err := readManifest(strings.NewReader(strings.Repeat("x", maxManifest+1))); err == nil {
		t.Error("a huge manifest was read")
	}
}

// A projected volume with the pod's own fields needs no API.
func TestStaticPodThatIsToldOfItself(t *testing.T) {
	pods, err := decodePods([]byte(strings.Replace(manifest, "spec:",
		"spec:\n  volumes: [{name: v, projected: {sources: [{downwardAPI: {items: [{path: name, fieldRef: {fieldPath: metadata.name}}]}}]}}]", 1)))
	if err == nil {
		err = complete(pods[0], origin{source: core.FileSource, location: "/x", nodeName: "n"})
	}
	if err != nil {
		t.Fatal(err)
	}
	projected := pods[0].Spec.Volumes[0].Projected
	if mode := projected.DefaultMode; mode == nil || *mode != 0o644 {
		t.Errorf("default mode %v", mode)
	}
	if version := projected.Sources[0].DownwardAPI.Items[0].FieldRef.APIVersion; version != "v1" {
		t.Errorf("API version %q of the field", version)
	}
}

// As upstream's kubelet, this one reads a manifest's first document, but says so.
func TestManifestsWithSeveralDocuments(t *testing.T) {
	path := filepath.Join(t.TempDir(), "two.yaml")
	if err := os.WriteFile(path, []byte("# ours\n---\n"+manifest+"---\n"+strings.Replace(manifest, "web", "other", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	watched, logs := observer.New(zap.WarnLevel)
	file := &File{Path: path, NodeName: "n", Clock: clock.RealClock{}, Logger: zap.New(watched)}
	manifests := map[string]manifestFile{}
	for range 2 {
		pods, err := file.read(manifests)
		if err != nil || len(pods) != 1 || pods[0].Name != "web-n" {
			t.Fatalf("%v, %v", pods, err)
		}
	}
	if n := logs.FilterMessage(unread).Len(); n != 1 {
		t.Errorf("%d lines in the log about what is not read, want one", n)
	}
	for _, text := range []string{
		manifest, "# ours\n---\n" + manifest, manifest + "---\n# nothing\n", "---\n" + manifest + "---\n", manifest + "...\n",
		"%YAML 1.1\n---\n" + manifest, manifest + "--- # nothing\n  # nothing\n",
	} {
		if pods, err := decodePods([]byte(text)); err != nil || len(pods) != 1 {
			t.Errorf("%q: %v, %v", text, pods, err)
		}
		if hasUnread([]byte(text)) {
			t.Errorf("%q has one document", text)
		}
	}
	for _, second := range []string{"...\nkind: Pod\n", "--- {kind: Pod}\n", "---\tkind\n"} {
		if !hasUnread([]byte(manifest + second)) {
			t.Errorf("%q is a second document", second)
		}
	}
}

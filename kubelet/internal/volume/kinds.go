package volume

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"kctl/kubelet/internal/volume/atomic"
	"kctl/kubelet/internal/volume/configmap"
	"kctl/kubelet/internal/volume/downwardapi"
	"kctl/kubelet/internal/volume/emptydir"
	"kctl/kubelet/internal/volume/hostpath"
	"kctl/kubelet/internal/volume/keys"
	"kctl/kubelet/internal/volume/mount"
	"kctl/kubelet/internal/volume/projected"
	"kctl/kubelet/internal/volume/secret"
	"kctl/proto/core"
)

// supportedKinds are the kinds of volume that pods may have, by the names of
// their fields in the API.
var supportedKinds = []string{"configMap", "downwardAPI", "emptyDir", "ephemeral", "hostPath", "image", "persistentVolumeClaim",
	"projected", "secret"}

// Check says why the pod's volumes cannot be made, naming the first that needs
// something unsupported.
func Check(pod *core.Pod) error {
	for i := range pod.Spec.Volumes {
		if err := check(&pod.Spec.Volumes[i]); err != nil {
			return fmt.Errorf("volume %q: %w", pod.Spec.Volumes[i].Name, err)
		}
	}
	for c := range core.Containers(&pod.Spec) {
		if err := checkContainer(c); err != nil {
			return fmt.Errorf("container %q: %w", c.Name, err)
		}
	}
	return nil
}

func check(volume *corev1.Volume) error {
	kind := kindOf(volume.VolumeSource)
	switch kind {
	case "configMap", "downwardAPI", "ephemeral", "hostPath", "image", "persistentVolumeClaim", "secret":
		return nil
	case "emptyDir":
		if medium := emptydir.Unsupported(volume.EmptyDir); medium != "" {
			return fmt.Errorf("emptyDir with medium %s is not supported", medium)
		}
		return nil
	case "projected":
		for i := range volume.Projected.Sources {
			if err := projected.Check(&volume.Projected.Sources[i]); err != nil {
				return err
			}
		}
		return nil
	}
	return fmt.Errorf("volumes of the kind %s are not supported, only %s", kind, strings.Join(supportedKinds, ", "))
}

// checkContainer checks the mount options. The pod runtime checks
// RecursiveReadOnly, which depends on the container runtime.
func checkContainer(container *core.Container) error {
	if len(container.VolumeDevices) > 0 {
		return errors.New("volumeDevices are not supported")
	}
	for i := range container.VolumeMounts {
		if len(container.VolumeMounts[i].BindMountOptions) > 0 {
			return fmt.Errorf("volumeMounts of %q: bindMountOptions are not supported", container.VolumeMounts[i].Name)
		}
	}
	return nil
}

// kindOf is the name of the field that is set in the source of a pod's volume, or of
// a persistent one.
func kindOf[Source corev1.VolumeSource | corev1.PersistentVolumeSource](of Source) string {
	source := reflect.ValueOf(of)
	for i := range source.NumField() {
		if !source.Field(i).IsNil() {
			name, _, _ := strings.Cut(source.Type().Field(i).Tag.Get("json"), ",")
			return name
		}
	}
	return "unknown"
}

// directoryNames are those of upstream's plugins, below which volumes are.
var directoryNames = map[string]string{
	"configMap":   "kubernetes.io~configmap",
	"downwardAPI": "kubernetes.io~downward-api",
	"emptyDir":    "kubernetes.io~empty-dir",
	"projected":   "kubernetes.io~projected",
	"secret":      "kubernetes.io~secret",
}

// emptyDirMarks is where a pod's directory has the marks of its emptyDirs that are set up.
var emptyDirMarks = filepath.Join("plugins", directoryNames["emptyDir"])

// pluginName is how upstream calls the plugin of a kind.
func pluginName(kind string) string {
	if directory, ok := directoryNames[kind]; ok {
		return strings.Replace(directory, "~", "/", 1)
	}
	switch kind {
	case "hostPath":
		return "kubernetes.io/host-path"
	case "local":
		return "kubernetes.io/local-volume"
	}
	return "kubernetes.io/" + kind
}

// inMemory are the kinds whose content must not be written to a disk, and downwardAPI, which upstream's
// kubelet has there: one that takes the other's pods over mounts what it misses, and their containers
// would keep the directory below.
func inMemory(kind string) bool {
	return kind == "secret" || kind == "projected" || kind == "downwardAPI"
}

// filledOnDisk says that an older kubelet has made a downwardAPI volume on the disk: the pod's containers
// have that directory, and would not see one mounted over it.
func filledOnDisk(kind, dir string) (bool, error) {
	if kind != "downwardAPI" || !atomic.Complete(dir) {
		return false, nil
	}
	inMemory, err := mount.IsTmpfs(dir)
	return err == nil && !inMemory, err
}

// hasContent are the kinds whose content comes from the API and may change.
func hasContent(kind string) bool {
	switch kind {
	case "configMap", "downwardAPI", "projected", "secret":
		return true
	}
	return false
}

// setUp makes one volume that is no emptyDir, or brings its content up to date. dir is
// its directory, which exists; hostPath and image have none.
func (m *Manager) setUp(ctx context.Context, pod *core.Pod, volume *corev1.Volume, kind, dir string) error {
	switch kind {
	case "image":
		return nil // it is pulled and mounted with each container
	case "hostPath":
		return hostpath.SetUp(volume.HostPath)
	}
	payload, err := m.payload(ctx, pod, volume)
	if err != nil {
		return err
	}
	around := &corev1.EmptyDirVolumeSource{} // upstream's kubelet puts the content into an emptyDir, too
	onDisk, err := filledOnDisk(kind, dir)
	if err != nil {
		return err
	}
	if inMemory(kind) && !onDisk {
		around.Medium = corev1.StorageMediumMemory
	}
	if err := emptydir.SetUp(dir, pod, around, m.allocatable()); err != nil {
		return err
	}
	options := atomic.Options{Now: m.config.Clock.Now()}
	if security := pod.Spec.SecurityContext; security != nil {
		options.Group = security.FSGroup
	}
	_, err = atomic.Write(dir, payload, options)
	return err
}

// payload is the present content of a volume.
func (m *Manager) payload(ctx context.Context, pod *core.Pod, volume *corev1.Volume) (atomic.Payload, error) {
	objects := m.config.Objects
	switch {
	case volume.ConfigMap != nil:
		s := volume.ConfigMap
		return configmap.Payload(ctx, objects, pod.Namespace,
			&corev1.ConfigMapProjection{LocalObjectReference: s.LocalObjectReference, Items: s.Items, Optional: s.Optional},
			keys.NewDefaults(s.DefaultMode, s.DefaultUser))
	case volume.Secret != nil:
		s := volume.Secret
		return secret.Payload(ctx, objects, pod.Namespace,
			&corev1.SecretProjection{LocalObjectReference: corev1.LocalObjectReference{Name: s.SecretName}, Items: s.Items, Optional: s.Optional},
			keys.NewDefaults(s.DefaultMode, s.DefaultUser))
	case volume.DownwardAPI != nil:
		s := volume.DownwardAPI
		return downwardapi.Payload(pod, s.Items, m.allocatable(), keys.NewDefaults(s.DefaultMode, s.DefaultUser))
	case volume.Projected != nil:
		return projected.Payload(ctx, objects, pod, volume.Projected, m.allocatable())
	}
	return nil, fmt.Errorf("a volume of the kind %s has no content", kindOf(volume.VolumeSource))
}

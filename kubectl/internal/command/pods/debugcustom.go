package pods

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"sigs.k8s.io/yaml"
)

var errNotModifiable = errors.New("name, command, image, lifecycle and volume devices are not modifiable via custom profile")

// readCustom reads the file of --custom. It must not set what the command line
// sets, nor what a container that is added to a pod cannot have.
func (d *debugOptions) readCustom() error {
	if d.customFile == "" {
		return nil
	}
	text, err := os.ReadFile(d.customFile)
	if err != nil {
		return fmt.Errorf("must pass a container spec json file for custom profile: %w", err)
	}
	custom := corev1.Container{}
	if err := yaml.Unmarshal(text, &custom); err != nil {
		return fmt.Errorf("%s does not contain a valid container spec: %w", d.customFile, err)
	}
	if custom.Name != "" || custom.Image != "" || len(custom.Command) > 0 || custom.Lifecycle != nil || len(custom.VolumeDevices) > 0 {
		return errNotModifiable
	}
	// The text, not the container: that a field is false differs from its absence.
	if d.custom, err = yaml.YAMLToJSON(text); err != nil {
		return fmt.Errorf("%s: %w", d.customFile, err)
	}
	return nil
}

// customize merges --custom into the container, as a strategic merge patch
// would: variables by name, lists of capabilities as a whole.
func (d *debugOptions) customize(container *corev1.Container) error {
	if d.custom == nil {
		return nil
	}
	before, err := json.Marshal(container)
	if err != nil {
		return fmt.Errorf("encode the container: %w", err)
	}
	after, err := strategicpatch.StrategicMergePatch(before, d.custom, corev1.Container{})
	if err != nil {
		return fmt.Errorf("%s: %w", d.customFile, err)
	}
	merged := corev1.Container{}
	if err := json.Unmarshal(after, &merged); err != nil {
		return fmt.Errorf("%s: %w", d.customFile, err)
	}
	if merged.Name != container.Name || merged.Image != container.Image || !slices.Equal(merged.Command, container.Command) ||
		merged.Lifecycle != nil || len(merged.VolumeDevices) > 0 { // a null removes without naming a value
		return errNotModifiable
	}
	*container = merged
	return nil
}

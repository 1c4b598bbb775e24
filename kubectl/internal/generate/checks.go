package generate

import (
	"errors"
	"fmt"

	"github.com/distribution/reference"
	corev1 "k8s.io/api/core/v1"
)

// CheckImage refuses an image name that no registry could serve, before a pod
// is created that could never pull it.
func CheckImage(image string) error {
	if image == "" {
		return errors.New("--image is required")
	}
	if _, err := reference.ParseNormalizedNamed(image); err != nil {
		return fmt.Errorf("invalid image name %q: %w", image, err)
	}
	return nil
}

// PullPolicy checks an image pull policy; empty leaves it to the server.
func PullPolicy(policy string) (corev1.PullPolicy, error) {
	switch p := corev1.PullPolicy(policy); p {
	case "", corev1.PullAlways, corev1.PullIfNotPresent, corev1.PullNever:
		return p, nil
	}
	return "", fmt.Errorf("invalid image pull policy: %s, valid values are: Always, IfNotPresent, Never", policy)
}

// restartPolicy checks a restart policy; empty is Always.
func restartPolicy(policy string) (corev1.RestartPolicy, error) {
	switch p := corev1.RestartPolicy(policy); p {
	case "":
		return corev1.RestartPolicyAlways, nil
	case corev1.RestartPolicyAlways, corev1.RestartPolicyOnFailure, corev1.RestartPolicyNever:
		return p, nil
	}
	return "", fmt.Errorf("invalid restart policy: %s, valid values are: Always, OnFailure, Never", policy)
}

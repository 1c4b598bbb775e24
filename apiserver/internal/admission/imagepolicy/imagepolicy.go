package imagepolicy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/api/imagepolicy/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/apiserver/internal/admission"
	"kctl/apiserver/internal/audit"
	"kctl/apiserver/internal/webhookclient"
	"kctl/proto/core"
)

// Name is upstream's name.
const Name = "ImagePolicyWebhook"

const (
	auditPrefix = "imagepolicywebhook.image-policy.k8s.io/"
	// Pod annotations whose names match are shown to the service.
	annotationInfix      = ".image-policy.k8s.io/"
	ephemeralSubresource = "ephemeralcontainers"
	// maxCachedSize is the size of the largest question whose answer is cached:
	// long names in requests could fill the memory.
	maxCachedSize = 10_000
)

// Service answers reviews: a webhookclient.Service.
type Service interface {
	Ask(ctx context.Context, question, answer any) error
}

// Plugin is the plugin.
type Plugin struct {
	admission.OnWrites
	Service Service
	// failOpen admits pods if the service can't be asked.
	failOpen bool

	allowTTL, denyTTL time.Duration // how long answers are cached
	answers           *webhookclient.Answers[answer]
}

type answer = v1alpha1.ImageReviewStatus

// Validate implements admission.Validator.
func (p *Plugin) Validate(ctx context.Context, a *admission.Attributes) error {
	pod, ok := a.Object.(*core.Pod)
	if !ok || a.Subresource != "" && a.Subresource != ephemeralSubresource {
		return nil
	}
	asked := specOf(pod, a)
	if old, ok := a.OldObject.(*core.Pod); ok {
		before := specOf(old, a)
		if slices.Equal(asked.Containers, before.Containers) && maps.Equal(asked.Annotations, before.Annotations) {
			return nil
		}
	}
	status, err := p.ask(ctx, asked)
	switch {
	case err != nil && p.failOpen:
		audit.Annotate(ctx, auditPrefix+"failed-open", "true")
		return nil
	case err != nil:
		return err
	}
	for key, value := range status.AuditAnnotations {
		if !strings.Contains(key, "/") {
			audit.Annotate(ctx, auditPrefix+key, value)
		}
	}
	switch {
	case status.Allowed:
		return nil
	case status.Reason != "":
		return fmt.Errorf("image policy webhook backend denied one or more images: %s", status.Reason)
	}
	return errRefused
}

var errRefused = errors.New("one or more images rejected by webhook backend")

// specOf is what the service is shown of a pod; if ephemeral containers are
// added, it is only those.
func specOf(pod *core.Pod, a *admission.Attributes) v1alpha1.ImageReviewSpec {
	spec := v1alpha1.ImageReviewSpec{Namespace: a.Namespace}
	if a.Subresource == ephemeralSubresource {
		for i := range pod.Spec.EphemeralContainers {
			spec.Containers = append(spec.Containers, v1alpha1.ImageReviewContainerSpec{Image: pod.Spec.EphemeralContainers[i].Image})
		}
	} else {
		for _, group := range [][]core.Container{pod.Spec.Containers, pod.Spec.InitContainers} {
			for i := range group {
				spec.Containers = append(spec.Containers, v1alpha1.ImageReviewContainerSpec{Image: group[i].Image})
			}
		}
	}
	for key, value := range pod.Annotations {
		if strings.Contains(key, annotationInfix) {
			if spec.Annotations == nil {
				spec.Annotations = map[string]string{}
			}
			spec.Annotations[key] = value
		}
	}
	return spec
}

// ask asks the service, or returns its cached answer.
func (p *Plugin) ask(ctx context.Context, spec v1alpha1.ImageReviewSpec) (answer, error) {
	question, err := json.Marshal(spec)
	if err != nil {
		return answer{}, fmt.Errorf("image policy: %w", err)
	}
	key := string(question)
	if status, ok := p.answers.Get(key); ok {
		return status, nil
	}
	meta := metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "ImageReview"}
	var review v1alpha1.ImageReview
	if err := p.Service.Ask(ctx, &v1alpha1.ImageReview{TypeMeta: meta, Spec: spec}, &review); err != nil {
		return answer{}, fmt.Errorf("image policy: %w", err)
	}
	if review.TypeMeta != meta {
		return answer{}, fmt.Errorf("image policy: the answer is a %s %s instead of a %s %s",
			review.APIVersion, review.Kind, meta.APIVersion, meta.Kind)
	}
	ttl := p.denyTTL
	if review.Status.Allowed {
		ttl = p.allowTTL
	}
	if ttl > 0 && len(key) <= maxCachedSize {
		p.answers.Put(key, review.Status, ttl)
	}
	return review.Status, nil
}

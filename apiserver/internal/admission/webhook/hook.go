package webhook

import (
	"fmt"
	"slices"
	"sync"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/utils/ptr"

	"kctl/apiserver/internal/admission/condition"
	"kctl/apiserver/internal/admission/match"
	"kctl/apiserver/internal/celexpression"
	"kctl/apiserver/internal/webhookclient"
	"kctl/proto/core"
)

// reviewVersions are the versions of AdmissionReview that this server speaks.
var reviewVersions = []string{"v1", "v1beta1"}

const (
	// maxAnswer has room for a patch, in base64, that replaces the largest
	// possible object.
	maxAnswer = 8 << 20
	userAgent = "kube-apiserver-admission"
)

// defaultTimeout is for webhooks that were stored without one.
const defaultTimeout = 10 * time.Second

// hook is one registered webhook, ready to be called.
type hook struct {
	configuration, name string
	// key distinguishes webhooks with the same name.
	key         string
	criteria    *match.Criteria
	conditions  func() (*condition.Conditions, error) // nil where there are none
	timeout     time.Duration
	failOpen    bool
	sideEffects bool // also on dry runs
	reinvoke    bool
	version     string // of the review; "" if no version is known to both sides
	client      *webhookclient.Client
	// configError is why it can't be called.
	configError error
}

// commonWebhook are the fields that both kinds of webhooks have.
type commonWebhook struct {
	admissionregistrationv1.ValidatingWebhook
	reinvoke bool
}

func ofValidating(obj core.Object, access webhookclient.Access) []*hook {
	configuration := obj.(*admissionregistrationv1.ValidatingWebhookConfiguration)
	hooks := make([]commonWebhook, 0, len(configuration.Webhooks))
	for _, w := range configuration.Webhooks {
		hooks = append(hooks, commonWebhook{ValidatingWebhook: w})
	}
	return newHooks(obj, hooks, access)
}

func ofMutating(obj core.Object, access webhookclient.Access) []*hook {
	configuration := obj.(*admissionregistrationv1.MutatingWebhookConfiguration)
	hooks := make([]commonWebhook, 0, len(configuration.Webhooks))
	for _, w := range configuration.Webhooks {
		hooks = append(hooks, commonWebhook{
			ValidatingWebhook: admissionregistrationv1.ValidatingWebhook{
				Name: w.Name, ClientConfig: w.ClientConfig, Rules: w.Rules, FailurePolicy: w.FailurePolicy, MatchPolicy: w.MatchPolicy,
				NamespaceSelector: w.NamespaceSelector, ObjectSelector: w.ObjectSelector, SideEffects: w.SideEffects,
				TimeoutSeconds: w.TimeoutSeconds, AdmissionReviewVersions: w.AdmissionReviewVersions, MatchConditions: w.MatchConditions,
			},
			reinvoke: ptr.Deref(w.ReinvocationPolicy, "") == admissionregistrationv1.IfNeededReinvocationPolicy,
		})
	}
	return newHooks(obj, hooks, access)
}

func newHooks(obj core.Object, webhooks []commonWebhook, access webhookclient.Access) []*hook {
	out := make([]*hook, 0, len(webhooks))
	for i := range webhooks {
		out = append(out, newHook(obj.GetName(), i, &webhooks[i], access))
	}
	return out
}

func newHook(configuration string, index int, w *commonWebhook, access webhookclient.Access) *hook {
	h := &hook{
		configuration: configuration, name: w.Name, key: fmt.Sprintf("%s/%d/%s", configuration, index, w.Name),
		timeout: defaultTimeout, reinvoke: w.reinvoke,
		failOpen: ptr.Deref(w.FailurePolicy, "") == admissionregistrationv1.Ignore,
		sideEffects: w.SideEffects == nil || *w.SideEffects != admissionregistrationv1.SideEffectClassNone &&
			*w.SideEffects != admissionregistrationv1.SideEffectClassNoneOnDryRun,
	}
	if w.TimeoutSeconds != nil {
		h.timeout = time.Duration(*w.TimeoutSeconds) * time.Second
	}
	for _, version := range w.AdmissionReviewVersions {
		if slices.Contains(reviewVersions, version) {
			h.version = version
			break
		}
	}
	h.criteria, h.configError = match.OfHook(w.Rules, w.MatchPolicy, w.NamespaceSelector, w.ObjectSelector)
	if len(w.MatchConditions) > 0 {
		// Compiled at first use: on most servers, most are never needed.
		h.conditions = sync.OnceValues(func() (*condition.Conditions, error) {
			compiler, err := condition.NewCompiler(condition.Options{Origin: celexpression.Stored})
			if err != nil {
				return nil, err
			}
			return condition.Compile(w.MatchConditions, compiler), nil
		})
	}
	h.client = webhookclient.NewClient(&w.ClientConfig, access, webhookclient.ClientOptions{
		Timeout: h.timeout, MaxAnswer: maxAnswer, UserAgent: userAgent,
	})
	return h
}

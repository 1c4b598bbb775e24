package housekeeping

import (
	"context"
	"fmt"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"kctl/apiserver/internal/admission/typecheck"
	"kctl/apiserver/internal/informer"
	"kctl/apiserver/internal/registry"
	"kctl/apiserver/internal/resources/admissionregistration"
	"kctl/proto/core"
)

// policyStatusName is the loop's field manager; upstream's.
const policyStatusName = "validatingadmissionpolicy-status"

// policyStatus records in the status of validating admission policies what is probably wrong with
// their expressions, once for each generation.
type policyStatus struct {
	documents typecheck.Documents
	policies  *informer.Informer[policyState]
	store     registry.Resource
}

type policyState struct{ generation, observed int64 }

func (s policyState) isChecked() bool { return s.generation <= s.observed }

func policyStateOf(obj core.Object) policyState {
	policy := obj.(*admissionregistrationv1.ValidatingAdmissionPolicy)
	return policyState{policy.Generation, policy.Status.ObservedGeneration}
}

func newPolicyStatus(d *Dependencies) (Loop, error) {
	p := &policyStatus{documents: d.Documents}
	var err error
	if p.policies, p.store, err = newInformer(d, admissionregistration.ValidatingPolicyResource, policyStateOf); err != nil {
		return nil, err
	}
	w := newWorker(policyStatusName+"-controller", d, 1, p.sync)
	p.policies.OnChange(func(key informer.Key, _, now *policyState) {
		if now != nil && !now.isChecked() {
			w.add(key)
		}
	})
	return runTogether(p.policies.Run, afterSync(w.run, p.policies.Synced())), nil
}

func (p *policyStatus) sync(ctx context.Context, key informer.Key) (time.Duration, error) {
	if state, ok := p.policies.Get("", key.Name); !ok || state.isChecked() {
		return 0, nil
	}
	policy, err := registry.GetStored[*admissionregistrationv1.ValidatingAdmissionPolicy](ctx, p.store, "", key.Name)
	if err != nil {
		return 0, ignoreNotFound(err, "read a policy")
	}
	warnings, err := typecheck.Check(policy, p.documents)
	if err != nil {
		return 0, fmt.Errorf("check the types of a policy's expressions: %w", err)
	}
	checked, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&admissionregistrationv1.TypeChecking{ExpressionWarnings: warnings})
	if err != nil {
		return 0, fmt.Errorf("encode what is wrong with a policy: %w", err)
	}
	err = registry.Apply(ctx, p.store, registry.Target{Name: key.Name, Subresource: "status"}, policyStatusName, map[string]any{
		"metadata": map[string]any{"uid": string(policy.UID)},
		"status":   map[string]any{"observedGeneration": policy.Generation, "typeChecking": checked},
	})
	return 0, ignoreNotFound(err, "record what is wrong with a policy")
}

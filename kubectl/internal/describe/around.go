package describe

import (
	"cmp"
	"fmt"
	"reflect"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	"kctl/proto/core"
)

// Around is what other objects say about the described one. Parts that its kind
// does not use are empty.
type Around struct {
	Endpoints   Endpoints                   // of a service
	Backends    map[string]string           // of an ingress: what is known of each SERVICE:PORT
	Pods        []core.Pod                  // a workload's own, or those that use a claim
	ReplicaSets []unstructured.Unstructured // a deployment's own, the oldest first
	Quotas      []corev1.ResourceQuota      // of a namespace
	Limits      []corev1.LimitRange         // of a namespace
}

// Endpoints are where a service leads, by the names of its ports; nil if nothing has looked
// for them yet.
type Endpoints map[string][]string

// Of names the first endpoints of a port, and counts the others.
func (e Endpoints) Of(port string) string {
	if e == nil {
		return "<none>"
	}
	const most = 3
	all := e[port]
	if len(all) <= most {
		return strings.Join(all, ",")
	}
	return fmt.Sprintf("%s + %d more...", strings.Join(all[:most], ","), len(all)-most)
}

// phases counts pods, as every layout of a workload has it.
func (p *page) phases() {
	counts := map[corev1.PodPhase]int{}
	for i := range p.around.Pods {
		counts[p.around.Pods[i].Status.Phase]++
	}
	p.line("Pods Status", "%d Running / %d Waiting / %d Succeeded / %d Failed",
		counts[corev1.PodRunning], counts[corev1.PodPending], counts[corev1.PodSucceeded], counts[corev1.PodFailed])
}

// replicaSets splits a deployment's replica sets into the one with its current
// template, and the others.
func (p *page) replicaSets(deployment *unstructured.Unstructured) {
	if len(p.around.ReplicaSets) == 0 {
		return
	}
	now, _, _ := unstructured.NestedMap(deployment.Object, "spec", "template")
	var old []string
	current := "<none>"
	for i := range p.around.ReplicaSets {
		set := &p.around.ReplicaSets[i]
		asked, _, _ := unstructured.NestedInt64(set.Object, "spec", "replicas")
		has, _, _ := unstructured.NestedInt64(set.Object, "status", "replicas")
		text := fmt.Sprintf("%s (%d/%d replicas created)", set.GetName(), has, asked)
		template, _, _ := unstructured.NestedMap(set.Object, "spec", "template")
		unstructured.RemoveNestedField(template, "metadata", "labels", appsv1.DefaultDeploymentUniqueLabelKey)
		if current == "<none>" && reflect.DeepEqual(template, now) {
			current = text
			continue
		}
		old = append(old, text)
	}
	p.line("OldReplicaSets", "%s", cmp.Or(strings.Join(old, ", "), "<none>"))
	p.line("NewReplicaSet", "%s", current)
}

// limitColumns are the head of a table of limits.
const limitColumns = "Type\tResource\tMin\tMax\tDefault Request\tDefault Limit\tMax Limit/Request Ratio"

// limits writes a limit range's table, each line after a mark.
func (p *page) limits(mark string, ranges *corev1.LimitRange) {
	for i := range ranges.Spec.Limits {
		limit := &ranges.Spec.Limits[i]
		columns := []corev1.ResourceList{limit.Min, limit.Max, limit.DefaultRequest, limit.Default, limit.MaxLimitRequestRatio}
		names := sets.Set[corev1.ResourceName]{}
		for _, list := range columns {
			names = names.Union(sets.KeySet(list))
		}
		for _, name := range sets.List(names) {
			row := mark + string(limit.Type) + "\t" + string(name)
			for _, list := range columns {
				cell := "-"
				if amount, ok := list[name]; ok {
					cell = amount.String()
				}
				row += "\t" + cell
			}
			p.text("%s", row)
		}
	}
}

// underlined writes the head of a table and a line under each word of it.
func (p *page) underlined(mark, columns string) {
	p.text("%s%s", mark, columns)
	p.text("%s%s", mark, strings.Map(func(r rune) rune {
		if r == '\t' {
			return r
		}
		return '-'
	}, columns))
}

func (p *page) limitRange(l *corev1.LimitRange, _ []core.Event) {
	p.names(&l.ObjectMeta)
	p.underlined("", limitColumns)
	p.limits("", l)
}

// bounds are the quotas and limits of a namespace.
func (p *page) bounds() {
	if len(p.around.Quotas) == 0 {
		p.text("\nNo resource quota.")
	} else {
		p.text("\nResource Quotas")
		for i := range p.around.Quotas {
			p.under(func() { p.quotaOf(&p.around.Quotas[i]) })
		}
	}
	if len(p.around.Limits) == 0 {
		p.text("\nNo LimitRange resource.")
		return
	}
	p.text("\nResource Limits")
	p.underlined(" ", limitColumns)
	for i := range p.around.Limits {
		p.limits(" ", &p.around.Limits[i])
	}
}

// quotaOf writes one of a namespace's quotas.
func (p *page) quotaOf(q *corev1.ResourceQuota) {
	p.line("Name", "%s", q.Name)
	p.scopes(q)
	p.text("Resource\tUsed\tHard")
	p.text("--------\t---\t---")
	p.usage(q)
}

// controlledBy names an object's controller.
func (p *page) controlledBy(meta *metav1.ObjectMeta) {
	for _, owner := range meta.OwnerReferences {
		if ptr.Deref(owner.Controller, false) {
			p.line("Controlled By", "%s/%s", owner.Kind, owner.Name)
		}
	}
}

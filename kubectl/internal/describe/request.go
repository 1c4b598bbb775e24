package describe

import (
	"crypto/x509"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/duration"

	"kctl/proto/core"
	"kctl/proto/pki"
)

// signingRequestOf describes a request for a certificate: who asks, and what the
// certificate would say.
func (p *page) signingRequestOf(r *signingRequest, events []core.Event) {
	p.line("Name", "%s", r.Name)
	p.line("Labels", "%s", labels.FormatLabels(r.Labels)) // on one line, as kubectl has it of requests
	p.line("Annotations", "%s", labels.FormatLabels(r.Annotations))
	p.line("CreationTimestamp", "%s", r.CreationTimestamp.Format(timeFormat))
	p.line("Requesting User", "%s", r.Spec.Username)
	p.line("Signer", "%s", r.Spec.SignerName)
	if r.Spec.ExpirationSeconds != nil {
		p.line("Requested Duration", "%s", duration.HumanDuration(time.Duration(*r.Spec.ExpirationSeconds)*time.Second))
	}
	p.line("Status", "%s", decision(r))
	asked, err := pki.ParseRequest(r.Spec.Request)
	if err != nil {
		p.line("Subject", "<unreadable: %v>", err)
		p.events(events)
		return
	}
	p.subject(asked)
	p.events(events)
}

func decision(r *signingRequest) string {
	var words []string
	for _, condition := range r.Status.Conditions {
		words = append(words, condition.Type)
	}
	if len(words) == 0 {
		words = []string{"Pending"}
	}
	if len(r.Status.Certificate) > 0 {
		words = append(words, "Issued")
	}
	return strings.Join(words, ",")
}

func (p *page) subject(asked *x509.CertificateRequest) {
	s := asked.Subject
	p.text("Subject:")
	p.line("\tCommon Name", "%s", s.CommonName)
	p.line("\tSerial Number", "%s", s.SerialNumber)
	for _, list := range []struct {
		label string
		words []string
	}{
		{"Organization", s.Organization}, {"Organizational Unit", s.OrganizationalUnit}, {"Country", s.Country},
		{"Locality", s.Locality}, {"Province", s.Province}, {"StreetAddress", s.StreetAddress}, {"PostalCode", s.PostalCode},
	} {
		p.listed(list.label, list.words)
	}
	var addresses, uris []string
	for _, ip := range asked.IPAddresses {
		addresses = append(addresses, ip.String())
	}
	for _, uri := range asked.URIs {
		uris = append(uris, uri.String())
	}
	if len(asked.DNSNames)+len(asked.EmailAddresses)+len(uris)+len(addresses) == 0 {
		return
	}
	p.text("Subject Alternative Names:")
	p.listed("DNS Names", asked.DNSNames)
	p.listed("Email Addresses", asked.EmailAddresses)
	p.listed("URIs", uris)
	p.listed("IP Addresses", addresses)
}

// listed writes words under each other after one label, in the second column.
func (p *page) listed(label string, words []string) {
	head := label + ":"
	for _, word := range words {
		fmt.Fprintf(p.tabs, "\t%s\t%s\n", head, word)
		head = ""
	}
}

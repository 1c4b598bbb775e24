package describe

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"kctl/proto/core"
)

// signingRequestOf describes a request for a certificate: who asks, and what the
// certificate would say.
func (p *page) signingRequestOf(r *signingRequest, events []core.Event) {
	p.line("Name", "%s", r.Name)
	p.pairs("Labels", r.Labels)
	p.notes("Annotations", r.Annotations)
	p.line("CreationTimestamp", "%s", r.CreationTimestamp.Format(timeFormat))
	p.line("Requesting User", "%s", r.Spec.Username)
	p.line("Signer", "%s", r.Spec.SignerName)
	if r.Spec.ExpirationSeconds != nil {
		p.line("Requested Duration", "%s", duration.HumanDuration(time.Duration(*r.Spec.ExpirationSeconds)*time.Second))
	}
	p.line("Status", "%s", decision(r))
	block, _ := pem.Decode(r.Spec.Request)
	if block == nil {
		p.line("Subject", "<unreadable: no PEM>")
		p.events(events)
		return
	}
	asked, err := x509.ParseCertificateRequest(block.Bytes)
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
	p.line("  Common Name", "%s", s.CommonName)
	p.line("  Serial Number", "%s", s.SerialNumber)
	for _, list := range []struct {
		label string
		words []string
	}{
		{"Organization", s.Organization}, {"Organizational Unit", s.OrganizationalUnit}, {"Country", s.Country},
		{"Locality", s.Locality}, {"Province", s.Province}, {"StreetAddress", s.StreetAddress}, {"PostalCode", s.PostalCode},
	} {
		p.listed("  ", list.label, list.words)
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
	const inside = "         "
	p.listed(inside, "DNS Names", asked.DNSNames)
	p.listed(inside, "Email Addresses", asked.EmailAddresses)
	p.listed(inside, "URIs", uris)
	p.listed(inside, "IP Addresses", addresses)
}

// listed writes words under each other after one label.
func (p *page) listed(indent, label string, words []string) {
	for i, word := range words {
		head := indent + label + ":"
		if i > 0 {
			head = strings.Repeat(" ", len(indent))
		}
		fmt.Fprintf(p.tabs, "%s\t%s\n", head, word)
	}
}

"""The shapes that providers give their keys, so that a scanner can tell them.

Each shape begins with fixed text or comes with a word that must occur, which is looked for first. Parts that
repeat are bounded or end where a key cannot go on, so that no text takes more than linear time.
"""

import re
from dataclasses import dataclass

TELLING = 4
"""A beginning of so many characters is not met by chance."""
_END = r"(?![A-Za-z0-9])"


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """What a kind of key looks like. `hint` occurs in every text that holds one.

    The group `secret` is the key where it is not all that matches, `drawn` the part of it that is random.
    Where the shape is `telling`, that may by chance look like a word.
    """

    kind: str
    hint: str
    pattern: re.Pattern[str]
    telling: bool = False


def _prefixed(line: str) -> Shape:
    """A key that begins with its hint, not in the middle of a word."""
    kind, hint, rest = (part.strip() for part in line.split(" | "))
    # The look behind comes second, so that the fixed text is what is searched for.
    begin = f"{re.escape(hint)}(?<![A-Za-z0-9]{re.escape(hint)})"
    pattern = re.compile(f"{begin}(?P<drawn>{rest}){_END}", re.ASCII)
    return Shape(kind=kind, hint=hint, pattern=pattern, telling=len(hint) >= TELLING)


def _shaped(kind: str, hint: str, pattern: str, *, telling: bool = False) -> Shape:
    return Shape(kind=kind, hint=hint, pattern=re.compile(pattern, re.ASCII), telling=telling)


_PREFIXES = r"""
AWS access key | AKIA | [A-Z0-9]{16}
AWS access key | ASIA | [A-Z0-9]{16}
AWS access key | ABIA | [A-Z0-9]{16}
AWS access key | ACCA | [A-Z0-9]{16}
GitHub token | ghp_ | [A-Za-z0-9]{30,255}
GitHub token | gho_ | [A-Za-z0-9]{30,255}
GitHub token | ghu_ | [A-Za-z0-9]{30,255}
GitHub token | ghs_ | [A-Za-z0-9]{30,255}
GitHub token | ghr_ | [A-Za-z0-9]{30,255}
GitHub token | github_pat_ | [A-Za-z0-9_]{30,255}
GitLab token | glpat- | [\w.-]{18,300}
GitLab token | gldt- | [\w-]{18,64}
GitLab token | glrt- | [\w.-]{18,64}
GitLab token | glptt- | [\w-]{18,64}
GitLab token | glcbt- | [\w-]{18,64}
GitLab token | glft- | [\w-]{18,64}
GitLab token | glsoat- | [\w-]{18,64}
GitLab token | glagent- | [\w-]{18,64}
GitLab token | GR1348941 | [\w-]{18,64}
Slack token | xoxb- | [A-Za-z0-9-]{10,250}
Slack token | xoxp- | [A-Za-z0-9-]{10,250}
Slack token | xoxa- | [A-Za-z0-9-]{10,250}
Slack token | xoxr- | [A-Za-z0-9-]{10,250}
Slack token | xoxs- | [A-Za-z0-9-]{10,250}
Slack token | xoxc- | [A-Za-z0-9-]{10,250}
Slack token | xoxd- | [\w%+/=.-]{10,400}
Slack token | xoxe. | [A-Za-z0-9.-]{10,250}
Slack token | xoxe- | [A-Za-z0-9-]{10,250}
Slack token | xapp- | [A-Za-z0-9-]{10,250}
Stripe key | sk_live_ | [A-Za-z0-9]{10,250}
Stripe key | sk_test_ | [A-Za-z0-9]{10,250}
Stripe key | rk_live_ | [A-Za-z0-9]{10,250}
Stripe key | rk_test_ | [A-Za-z0-9]{10,250}
webhook secret | whsec_ | [\w+/=-]{16,250}
Google API key | AIza | [\w-]{33,38}
Google OAuth secret | GOCSPX- | [\w-]{20,40}
Google OAuth token | ya29. | [\w.-]{20,400}
Google OAuth token | 1//0 | [\w-]{30,250}
Anthropic key | sk-ant- | [\w-]{20,250}
OpenRouter key | sk-or- | [\w-]{20,250}
OpenAI key | sk-proj- | [\w-]{20,250}
OpenAI key | sk-svcacct- | [\w-]{20,250}
OpenAI key | sk-admin- | [\w-]{20,250}
API key | sk- | [\w-]{20,250}
API key | sk_ | [A-Za-z0-9]{24,250}
Hugging Face token | hf_ | [A-Za-z0-9]{28,64}
Hugging Face token | api_org_ | [A-Za-z0-9]{28,64}
Groq key | gsk_ | [A-Za-z0-9]{28,80}
xAI key | xai- | [A-Za-z0-9-]{28,120}
Perplexity key | pplx- | [A-Za-z0-9]{28,80}
Replicate token | r8_ | [A-Za-z0-9]{28,64}
Cerebras key | csk- | [a-z0-9]{28,80}
Pinecone key | pcsk_ | [\w-]{28,120}
Tavily key | tvly- | [A-Za-z0-9-]{20,80}
LangSmith key | lsv2_ | [a-z]{2}_[\w]{28,80}
Fireworks key | fw_ | [A-Za-z0-9]{20,64}
npm token | npm_ | [A-Za-z0-9]{30,64}
PyPI token | pypi- | [\w-]{30,400}
RubyGems key | rubygems_ | [a-f0-9]{40,64}
Docker token | dckr_pat_ | [\w-]{20,64}
Docker token | dckr_oat_ | [\w-]{20,64}
NuGet key | oy2 | [a-z0-9]{43}
crates.io token | cio | [A-Za-z0-9]{32}
Clojars token | CLOJARS_ | [a-f0-9]{60}
SendGrid key | SG. | [\w-]{16,32}\.[\w-]{16,64}
Twilio key | SK | [0-9a-f]{32}
Mailgun key | key- | [0-9a-f]{32}
Brevo key | xkeysib- | [a-f0-9]{40,80}-[A-Za-z0-9]{10,20}
Resend key | re_ | [A-Za-z0-9]{6,12}_[A-Za-z0-9]{16,40}
Shopify token | shpat_ | [a-fA-F0-9]{32}
Shopify token | shpss_ | [a-fA-F0-9]{32}
Shopify token | shpca_ | [a-fA-F0-9]{32}
Shopify token | shppa_ | [a-fA-F0-9]{32}
Square token | sq0atp- | [\w-]{20,60}
Square token | sq0csp- | [\w-]{20,60}
Square token | EAAA | [\w-]{56,64}
PayPal token | access_token$production$ | [a-z0-9]{16}\$[a-f0-9]{32}
Facebook token | EAA | [A-Za-z0-9]{60,400}
DigitalOcean token | dop_v1_ | [a-f0-9]{64}
DigitalOcean token | doo_v1_ | [a-f0-9]{64}
DigitalOcean token | dor_v1_ | [a-f0-9]{64}
Heroku key | HRKU- | [\w-]{30,80}
Netlify token | nfp_ | [A-Za-z0-9]{30,64}
Fly.io token | FlyV1 | [ ]fm\d[ar]?_[\w+/=,-]{20,2000}
Fly.io token | fo1_ | [\w-]{30,64}
Render key | rnd_ | [A-Za-z0-9]{24,64}
Supabase key | sbp_ | [a-f0-9]{40}
Supabase key | sb_secret_ | [\w-]{20,64}
PlanetScale secret | pscale_ | (?:tkn|pw|oauth)_[\w.=-]{28,64}
Databricks token | dapi | [a-f0-9]{32}(?:-\d)?
HashiCorp Vault token | hvs. | [\w-]{20,300}
HashiCorp Vault token | hvb. | [\w-]{20,300}
Pulumi token | pul- | [a-f0-9]{40}
Doppler token | dp. | (?:pt|st|ct|sa|scim|audit)\.[\w.-]{36,64}
1Password token | ops_eyJ | [\w+/=-]{40,2000}
age private key | AGE-SECRET-KEY-1 | [A-Z0-9]{40,80}
Tailscale key | tskey- | [\w-]{16,120}
Grafana token | glsa_ | [A-Za-z0-9]{24,40}_[a-f0-9]{8}
Grafana token | glc_ | [\w+/=-]{32,400}
New Relic key | NRAK- | [A-Z0-9]{20,40}
New Relic key | NRII- | [\w-]{20,40}
Sentry token | sntrys_ | [\w+/=-]{40,400}
Sentry token | sntryu_ | [a-f0-9]{64}
Dynatrace token | dt0c01. | [A-Z0-9]{24}\.[A-Z0-9]{64}
Airtable token | pat | [A-Za-z0-9]{14}\.[a-f0-9]{64}
Notion token | secret_ | [A-Za-z0-9]{40,48}
Notion token | ntn_ | [A-Za-z0-9]{40,52}
Linear key | lin_api_ | [A-Za-z0-9]{32,48}
Atlassian token | ATATT3 | [\w=-]{40,400}
Bitbucket password | ATBB | [A-Za-z0-9]{28,40}
Atlassian token | ATCTT3 | [\w=-]{40,400}
Figma token | figd_ | [\w-]{32,64}
Postman key | PMAK- | [a-f0-9]{24}-[a-f0-9]{34}
HubSpot token | pat-na1- | [a-f0-9-]{36}
HubSpot token | pat-eu1- | [a-f0-9-]{36}
Contentful token | CFPAT- | [\w-]{30,64}
Mapbox token | sk.eyJ | [\w-]{20,200}\.[\w-]{16,64}
Plaid token | access-production- | [a-f0-9-]{36}
Plaid token | access-sandbox- | [a-f0-9-]{36}
Alibaba key | LTAI | [A-Za-z0-9]{12,24}
Tencent key | AKID | [A-Za-z0-9]{32}
Sourcegraph token | sgp_ | [a-fA-F0-9_]{40,80}
CircleCI token | CCIPAT_ | [\w]{30,80}
Buildkite token | bkua_ | [a-f0-9]{40}
JFrog token | AKCp | [A-Za-z0-9]{60,80}
Sonar token | sqp_ | [a-f0-9]{40}
Sonar token | squ_ | [a-f0-9]{40}
Sonar token | sqa_ | [a-f0-9]{40}
LaunchDarkly key | sdk- | [a-f0-9]{8}(?:-[a-f0-9]{4}){3}-[a-f0-9]{12}
Prefect key | pnu_ | [A-Za-z0-9]{30,64}
Razorpay key | rzp_live_ | [A-Za-z0-9]{10,40}
Flutterwave key | FLWSECK | [-_][\w-]{16,80}
Adafruit key | aio_ | [A-Za-z0-9]{28}
Neon key | napi_ | [a-z0-9]{40,80}
Nostr private key | nsec1 | [a-z0-9]{50,64}
extended private key | xprv | [1-9A-HJ-NP-Za-km-z]{90,112}
Azure DevOps token | AzDO | [\w]{40,80}
NVIDIA key | nvapi- | [\w-]{40,90}
PostHog key | phx_ | [A-Za-z0-9]{30,64}
Jina key | jina_ | [\w-]{40,80}
RunPod key | rpa_ | [A-Z0-9]{30,60}
Linear token | lin_oauth_ | [a-f0-9]{40,80}
EasyPost key | EZAK | [A-Za-z0-9]{40,60}
EasyPost key | EZTK | [A-Za-z0-9]{40,60}
Vercel token | vercel_blob_rw_ | [\w]{20,90}
Dropbox token | sl. | [\w-]{60,200}
Discord token | mfa. | [\w-]{60,100}
Bitbucket token | BBDC- | [A-Za-z0-9+/]{30,60}
ClickUp token | pk_ | \d{5,12}_[A-Z0-9]{24,40}
Firebase key | AAAA | [\w-]{7}:APA91b[\w-]{100,160}
Okta token | 00 | [\w-]{40}
Typeform token | tfp_ | [\w.-]{30,80}
Frame.io token | fio-u- | [\w-]{40,80}
Duffel token | duffel_ | (?:test|live)_[\w-]{30,60}
Lob key | live_ | [A-Za-z0-9]{30,60}
Mollie key | test_ | [A-Za-z0-9]{30,60}
Shippo token | shippo_ | (?:live|test)_[a-f0-9]{40}
Intra42 secret | s-s4t2 | (?:ud|af)-[a-f0-9]{40,80}
Readme key | rdme_ | [a-z0-9]{40,90}
Scalingo token | tk-us- | [\w-]{40,60}
Prefect key | pnb_ | [A-Za-z0-9]{30,64}
Yandex key | AQVN | [\w-]{34,40}
Yandex token | y0_ | [\w-]{50,80}
Braintree token | access_token$sandbox$ | [a-z0-9]{16}\$[a-f0-9]{32}
Coveralls token | cov_ | [A-Za-z0-9]{30,60}
Snyk token | snyk_ | [\w.-]{30,120}
Cloudflare key | v1.0- | [a-f0-9]{24}-[a-f0-9]{100,160}
Voyage key | pa- | [\w-]{40,60}
Unkey key | unkey_ | [A-Za-z0-9]{20,60}
Facebook token | IGQV | [\w-]{60,250}
Slack token | xwfp- | [A-Za-z0-9-]{30,200}
"""

_OTHERS = (
    _shaped(
        "JSON Web Token",
        "eyJ",
        r"eyJ(?<![\w-]eyJ)[\w-]{8,4000}\.[\w-]{8,8000}\.(?:[\w-]{8,4000}(?:\.[\w-]{0,4000}){0,2})?",
    ),
    _shaped(
        "Slack webhook",
        "hooks.slack.com",
        r"hooks\.slack\.com/(?:services|workflows|triggers)/(?P<secret>[\w/-]{20,120})",
    ),
    _shaped(
        "Teams webhook",
        "/IncomingWebhook/",
        r"/webhook[bB]?2?/(?P<secret>[\w@-]{30,90}/IncomingWebhook/[\w/-]{30,120})",
    ),
    _shaped("webhook", "/hooks/", r"/hooks/(?P<secret>[a-z0-9]{24,32})(?![\w-])", telling=True),
    _shaped(
        "AWS secret key",
        "A",
        r"(?<!\w)A[KS]IA[A-Z0-9]{16}[\"']?[\s:,;/|]{1,4}[\"']?(?P<secret>[A-Za-z0-9+/]{40})(?![\w+/])",
    ),
    _shaped(
        "seed for one-time codes",
        "otpauth://",
        r"otpauth://[^\s\"']{1,200}?[?&]secret=(?P<secret>[A-Za-z2-7]{16,128})",
        telling=True,
    ),
    # What names its issuer before random characters, as most keys of today do. Ids are shorter.
    _shaped(
        "API key",
        "_",
        r"(?<![\w./-])(?!(?:user|usr|org|run|thread|file|msg|req|evt|cus|price|prod|sub|cs|pk|in|toolu|call|resp"
        r"|pm|seti|src|item|asst|vs|batch|conv|task|img|css|pub)_)[a-z]{2,12}(?:_[a-z0-9]{2,8}){0,3}_"
        r"(?P<drawn>(?=[A-Za-z0-9]{0,40}[A-Z])(?=[A-Za-z0-9]{0,40}[a-z])(?=[A-Za-z0-9]{0,40}\d)[A-Za-z0-9]{28,200})(?![\w-])",
    ),
    _shaped(
        "API key",
        "_",
        r"(?<![\w./-])(?:[a-z]{2,12}_){0,2}(?:key|token|secret|live|prod|api|pat|auth|sk|tok|apikey|access|hook|dh)_"
        r"(?P<drawn>(?=[a-z0-9]{0,40}[a-z])(?=[a-z0-9]{0,40}\d)[a-z0-9]{28,200})(?![\w-])",
    ),
    _shaped("Discord webhook", "/api/webhooks/", r"/api/webhooks/\d{10,25}/(?P<secret>[\w-]{30,120})"),
    _shaped("Teams webhook", "webhook.office.com", r"webhook\.office\.com/(?P<secret>[\w@/-]{40,300})"),
    _shaped(
        "Zapier webhook", "hooks.zapier.com", r"/hooks/catch/(?P<secret>\d{4,12}/\w{5,20})", telling=True
    ),
    _shaped("IFTTT key", "maker.ifttt.com", r"maker\.ifttt\.com/[\w/]{1,100}/key/(?P<secret>[\w-]{16,64})"),
    _shaped("Discord token", ".", r"(?<![\w.-])[MNO][\w-]{22,27}\.[\w-]{6}\.[\w-]{27,40}(?![\w-])"),
    _shaped("Telegram token", ":", r"(?:(?<!\w)|(?<=bot))\d{8,10}:(?P<drawn>[\w-]{35})(?![\w-])"),
    _shaped("Terraform token", ".atlasv1.", r"(?<!\w)[A-Za-z0-9]{14}\.atlasv1\.[\w-]{50,80}"),
    _shaped("Azure client secret", "Q~", r"(?<![\w~.-])[\w~.-]{3}\dQ~[\w~.-]{30,36}"),
    _shaped("signed URL", "sig=", r"[?&;]sig=(?P<secret>[A-Za-z0-9%/+]{40,60}(?:%3[dD]|=){0,2})"),
    _shaped(
        "signed URL",
        "Signature=",
        r"[?&;](?:X-Amz-|X-Goog-)?Signature=(?P<secret>[A-Za-z0-9%/+~_-]{40,600}={0,2})",
    ),
    _shaped("Mailchimp key", "-us", r"(?<!\w)[0-9a-f]{32}-us\d{1,2}(?!\w)"),
    _shaped("Twitter token", "AAAAAAAAAA", r"(?<![A-Za-z0-9+/])A{18,30}(?P<drawn>[\w%]{40,200})"),
    _shaped("Alchemy key", "alchemy.com/v2/", r"alchemy\.com/v2/(?P<secret>[\w-]{24,64})"),
    _shaped("Infura key", "infura.io/", r"infura\.io/(?:ws/)?v3/(?P<secret>[0-9a-f]{32})"),
    _shaped("private feed", "/private-", r"/private-(?P<secret>[0-9a-f]{32})/"),
    _shaped("Fernet key", "Fernet(", r"Fernet\(b?[\"'](?P<secret>[\w-]{43}=)[\"']"),
    _shaped("private key", "", r"(?<!\w)[5KL][1-9A-HJ-NP-Za-km-z]{50,51}(?!\w)"),
    _shaped("Asana token", "/", r"(?<!\w)\d/\d{12,20}(?:/\d{12,20})?:(?P<drawn>[a-f0-9]{32})(?!\w)"),
)

SHAPES = (*map(_prefixed, _PREFIXES.strip().splitlines()), *_OTHERS)
"""Every shape, the more telling of two that begin alike first."""

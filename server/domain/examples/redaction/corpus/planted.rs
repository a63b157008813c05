//! Secrets in the forms of services, and in the places where logs hold them.
//!
//! The forms are those of published rules (gitleaks, detect-secrets, secretlint) and of the
//! documentation of each service.

use super::{Dice, PLANTED, Planted};

/// Plants every form as often as it takes to have the whole number.
pub(super) fn all(dice: &mut Dice) -> Vec<Planted> {
    let mut out = Vec::new();
    for round in 0.. {
        for (number, (kind, form)) in TOKENS.iter().enumerate() {
            let around = AROUND.iter().cycle().nth(number * 3 + round).copied().unwrap_or("{}");
            out.push(plant(dice, kind, &around.replace("{}", &format!("‹{form}›"))));
        }
        for (kind, line) in LINES {
            out.push(plant(dice, kind, line));
        }
        if out.len() >= PLANTED {
            break;
        }
    }
    out.truncate(PLANTED);
    out
}

/// Fills a pattern in; what stands between the marks is the secret.
fn plant(dice: &mut Dice, kind: &'static str, pattern: &str) -> Planted {
    let mut text = String::new();
    let mut secrets = Vec::new();
    let filled = dice.fill(pattern);
    let mut rest = filled.as_str();
    while let Some((before, after)) = rest.split_once('‹') {
        let (secret, after) = after.split_once('›').unwrap_or((after, ""));
        text.push_str(before);
        text.push_str(secret);
        secrets.extend(secret.lines().map(str::to_owned));
        rest = after;
    }
    text.push_str(rest);
    Planted { kind, text, secrets }
}

/// What stands around a token in a log; nothing here names it a secret.
const AROUND: [&str; 10] = [
    "{}",
    "2026-03-01T10:20:30Z ERROR upstream answered 401 for {}",
    r#"{"level":"info","value":"{}","attempt":2}"#,
    "export X_VALUE={}",
    "curl -sS https://api.example.org/v1/items -H 'X-Thing: {}'",
    "  - {}",
    "config: using {}, from file",
    r#"value = "{}""#,
    r#"{"message":"{\"v\":\"{}\"}"}"#,
    "rejected ({}) after 3 attempts",
];

/// Tokens that are known by themselves.
#[rustfmt::skip]
const TOKENS: &[(&str, &str)] = &[
    ("Stripe", "sk_live_{A24}"),
    ("Stripe restricted", "rk_live_{A24}"),
    ("Stripe webhook", "whsec_{A32}"),
    ("AWS key", "AKIA{U16}"),
    ("AWS temporary key", "ASIA{U16}"),
    ("AWS bearer key", "ABIA{U16}"),
    ("AWS Bedrock", "ABSK{b110}=="),
    ("GitHub classic", "ghp_{A36}"),
    ("GitHub OAuth", "gho_{A36}"),
    ("GitHub server", "ghs_{A36}"),
    ("GitHub fine-grained", "github_pat_{A22}_{A59}"),
    ("GitLab personal", "glpat-{w20}"),
    ("GitLab deploy", "gldt-{w20}"),
    ("GitLab trigger", "glptt-{h40}"),
    ("GitLab job", "glcbt-{h2}_{A20}"),
    ("GitLab mail", "glimt-{a25}"),
    ("GitLab agent", "glagent-{w50}"),
    ("GitLab runner", "GR1348941{A20}"),
    ("Slack bot", "xoxb-{d12}-{d12}-{A24}"),
    ("Slack user", "xoxp-{d12}-{d12}-{d12}-{h32}"),
    ("Slack app", "xapp-1-A{U10}-{d12}-{h64}"),
    ("Slack refresh", "xoxe-1-{A147}"),
    ("Google API", "AIza{w35}"),
    ("Google access", "ya29.{w60}"),
    ("Google client", "GOCSPX-{w28}"),
    ("Google refresh", "1//0{w40}"),
    ("OpenAI project", "sk-proj-{A20}T3BlbkFJ{A20}"),
    ("OpenAI", "sk-{A20}T3BlbkFJ{A20}"),
    ("Anthropic", "sk-ant-api03-{w93}AA"),
    ("OpenRouter", "sk-or-v1-{h64}"),
    ("Hugging Face", "hf_{A34}"),
    ("Groq", "gsk_{A52}"),
    ("Replicate", "r8_{A37}"),
    ("Perplexity", "pplx-{A48}"),
    ("xAI", "xai-{A80}"),
    ("NVIDIA", "nvapi-{w64}"),
    ("Cerebras", "csk-{a48}"),
    ("LangSmith", "lsv2_pt_{h32}_{h10}"),
    ("Pinecone", "pcsk_{A6}_{A63}"),
    ("SendGrid", "SG.{w22}.{w43}"),
    ("Mailgun", "key-{h32}"),
    ("Mailchimp", "{h32}-us{d1}"),
    ("Brevo", "xkeysib-{h64}-{A16}"),
    ("Twilio", "SK{h32}"),
    ("Resend", "re_{A8}_{A24}"),
    ("Square secret", "sq0csp-{w43}"),
    ("Square access", "EAAA{w60}"),
    ("Facebook", "EAAM{A110}"),
    ("Shopify access", "shpat_{h32}"),
    ("Shopify secret", "shpss_{h32}"),
    ("Braintree", "access_token$production${a16}${h32}"),
    ("Flutterwave", "FLWSECK_TEST-{h32}-X"),
    ("EasyPost", "EZAK{A54}"),
    ("Duffel", "duffel_live_{w43}"),
    ("Shippo", "shippo_live_{h40}"),
    ("PyPI", "pypi-AgEIcHlwaS5vcmc{w100}"),
    ("RubyGems", "rubygems_{h48}"),
    ("npm", "npm_{A36}"),
    ("NuGet", "oy2{a43}"),
    ("crates.io", "cio{A32}"),
    ("Clojars", "CLOJARS_{a60}"),
    ("Docker", "dckr_pat_{w27}"),
    ("Docker organization", "dckr_oat_{w32}"),
    ("Vault service", "hvs.{w90}"),
    ("Vault batch", "hvb.{w120}"),
    ("Terraform", "{A14}.atlasv1.{w60}"),
    ("Pulumi", "pul-{h40}"),
    ("Doppler", "dp.pt.{A43}"),
    ("Databricks", "dapi{h32}"),
    ("Fly.io", "fm2_{b100}"),
    ("Heroku", "HRKU-AA{w58}"),
    ("Netlify", "nfp_{A36}"),
    ("Supabase", "sbp_{h40}"),
    ("Supabase secret", "sb_secret_{w31}"),
    ("PlanetScale", "pscale_tkn_{w43}"),
    ("DigitalOcean", "dop_v1_{h64}"),
    ("DigitalOcean refresh", "dor_v1_{h64}"),
    ("Cloudflare origin", "v1.0-{h24}-{h146}"),
    ("Alibaba", "LTAI{A20}"),
    ("Tencent", "AKID{A32}"),
    ("Yandex", "AQVN{w38}"),
    ("Microsoft Entra", "{A3}7Q~{A34}"),
    ("Grafana service", "glsa_{A32}_{h8}"),
    ("Grafana Cloud", "glc_{A80}"),
    ("New Relic", "NRAK-{U27}"),
    ("Sentry user", "sntryu_{h64}"),
    ("Dynatrace", "dt0c01.{U24}.{U64}"),
    ("Postman", "PMAK-{h24}-{h34}"),
    ("Linear", "lin_api_{A40}"),
    ("Notion", "ntn_{d11}{A35}"),
    ("Airtable", "pat{A14}.{h64}"),
    ("Figma", "figd_{w40}"),
    ("Atlassian", "ATATT3xFfGF0{w80}={h8}"),
    ("Bitbucket", "ATBB{A32}"),
    ("Typeform", "tfp_{w59}"),
    ("Contentful", "CFPAT-{w43}"),
    ("Mapbox", "sk.eyJ{A60}.{A22}"),
    ("Discord bot", "M{A23}.{w6}.{w27}"),
    ("Telegram", "{d9}:AA{w33}"),
    ("X", "AAAAAAAAAAAAAAAAAAAAAA{A80}"),
    ("Adafruit", "aio_{A28}"),
    ("Adobe", "p8e-{a32}"),
    ("age", "AGE-SECRET-KEY-1{U58}"),
    ("1Password", "ops_eyJ{A250}"),
    ("Frame.io", "fio-u-{w64}"),
    ("Infracost", "ico-{A32}"),
    ("JFrog", "AKCp{A69}"),
    ("Octopus Deploy", "API-{U26}"),
    ("OpenShift", "sha256~{w43}"),
    ("Prefect", "pnu_{a36}"),
    ("ReadMe", "rdme_{a70}"),
    ("SonarQube", "squ_{h40}"),
    ("Sourcegraph", "sgp_{h40}"),
    ("Tailscale", "tskey-auth-{A17}-{A32}"),
    ("Buildkite", "bkua_{h40}"),
    ("CircleCI", "CCIPAT_{A22}_{h40}"),
    ("Deno", "ddp_{A36}"),
    ("MaxMind", "{A6}_{A29}_mmk"),
    ("Firebase messaging", "AAAA{A7}:APA91b{w134}"),
    ("Harness", "pat.{A22}.{h24}.{A20}"),
    ("Plaid", "access-production-{h8}-{h4}-{h4}-{h4}-{h12}"),
    ("JSON Web Token", "eyJ{A33}.eyJ{A80}.{w43}"),
    ("Anthropic OAuth", "sk-ant-oat01-{w93}AA"),
    ("Cloudinary address", "cloudinary://{d15}:{w27}@app"),
];

/// Lines whose other words make the secret known. It stands between the marks.
#[rustfmt::skip]
const LINES: &[(&str, &str)] = &[
    ("environment", "DB_PASSWORD=‹{P16}›"),
    ("environment", "POSTGRES_PASSWORD: ‹{P20}›"),
    ("environment", "export SMTP_PASS=‹{P12}›"),
    ("environment", "SECRET_KEY_BASE=‹{h64}›"),
    ("environment", "RAILS_MASTER_KEY=‹{h32}›"),
    ("JSON", r#"{"user":"app","password":"‹{P14}›","port":5432}"#),
    ("JSON", r#"{"client_id":"app","client_secret":"‹{w40}›"}"#),
    ("JSON in JSON", r#"{"body":"{\"apiKey\":\"‹{A32}›\"}"}"#),
    ("YAML", "  encryption_key: '‹{A32}›'"),
    ("YAML", "auth_key: \"‹{A32}›\""),
    ("TOML", "service_key = \"‹{A32}›\""),
    ("properties", "spring.datasource.password=‹{P16}›"),
    ("Django", "SECRET_KEY = 'django-insecure-‹{w50}›'"),
    ("AWS secret", "aws_secret_access_key = ‹{b40}›"),
    ("AWS secret", r#""SecretAccessKey": "‹{b40}›","#),
    ("AWS secret", "aws configure set aws_secret_access_key ‹{b40}›"),
    ("AWS session", "AWS_SESSION_TOKEN=‹{b200}›"),
    ("header", "> X-Api-Key: ‹{A40}›"),
    ("header", "PRIVATE-TOKEN: ‹{A20}›"),
    ("header", "Authorization: Bearer ‹{A40}›"),
    ("header", "authorization: Basic ‹{b32}›"),
    ("header", "Authorization: token ‹{h40}›"),
    ("header", "Authorization: SSWS ‹00{w40}›"),
    ("header", "Proxy-Authorization: Basic ‹{b24}›"),
    ("digest", "Authorization: Digest username=\"app\", realm=\"x\", response=\"‹{h32}›\""),
    ("AWS signature", "Authorization: AWS4-HMAC-SHA256 SignedHeaders=host, Signature=‹{h64}›"),
    ("cookie", "Cookie: session=‹{A32}›; theme=dark"),
    ("cookie", "< set-cookie: sid=‹{A40}›; Path=/; HttpOnly"),
    ("address", "fatal: unable to access 'https://deploy:‹{P12}›@git.example.org/r.git/'"),
    ("address", "DATABASE_URL=postgres://app:‹{P16}›@db:5432/app"),
    ("address", "mongodb+srv://app:‹{A18}›@cluster0.example.org/app"),
    ("address", "redis://:‹{A24}›@cache:6379/0"),
    ("address", "amqp://app:‹{A9}/{A9}›@mq:5672/x"),
    ("Go data source", "dsn: app:‹{A16}›@tcp(db:3306)/app?parseTime=true"),
    ("Oracle", "jdbc:oracle:thin:app/‹{A14}›@//db:1521/x"),
    ("SQL Server", "Server=db;Database=app;User Id=sa;Password=‹{A16}›;Encrypt=true"),
    ("Azure storage", "DefaultEndpointsProtocol=https;AccountName=x;AccountKey=‹{b86}==›;EndpointSuffix=core.windows.net"),
    ("Azure bus", "Endpoint=sb://x.servicebus.windows.net/;SharedAccessKeyName=r;SharedAccessKey=‹{b43}=›"),
    ("Azure SAS", "GET https://x.blob.core.windows.net/c?sv=2024-11-04&sr=c&sig=‹{A43}%3D›"),
    ("S3 signature", "GET https://b.s3.amazonaws.com/k?X-Amz-Date=20260301T000000Z&X-Amz-Signature=‹{h64}›"),
    ("query", "GET /v1/items?access_token=‹{A32}›&page=2 HTTP/1.1"),
    ("query", "https://maps.example.org/js?key=‹{A39}›&v=3"),
    ("otpauth", "otpauth://totp/app?secret=‹{U32}›&issuer=app"),
    ("form", "grant_type=password&username=app&password=‹{A16}›"),
    ("Slack webhook", "POST https://hooks.slack.com/services/‹T{U8}/B{U8}/{A24}›"),
    ("Discord webhook", "https://discord.com/api/webhooks/‹{d18}/{w68}›"),
    ("Teams webhook", "https://x.webhook.office.com/webhookb2/‹{h20}@{h20}/IncomingWebhook/{h32}/{h20}›"),
    ("Zapier webhook", "POST https://hooks.zapier.com/hooks/catch/‹{d7}/{a7}/›"),
    ("curl", "+ curl -u deploy:‹{P14}› https://api.example.org"),
    ("curl", "curl --user 'app:‹{P14}›' https://api.example.org"),
    ("mysql", "mysql -h db -u root -p‹{A12}› app"),
    ("mysql", "mysqldump --password=‹{P12}› app"),
    ("PostgreSQL", "PGPASSWORD=‹{A16}› psql -h db app"),
    ("sshpass", "sshpass -p ‹{A12}› ssh app@host"),
    ("docker login", "docker login -u app -p ‹{A20}› registry.example.org"),
    ("redis-cli", "redis-cli -h cache -a ‹{A20}› ping"),
    ("command", "svn checkout --username app --password ‹{A14}› https://svn.example.org"),
    ("command", "argv: ['deploy', '--auth-token', '‹{A32}›']"),
    ("openssl", "openssl rsa -in k.pem -passin pass:‹{A16}›"),
    ("keytool", "keytool -list -storepass ‹{A12}› -keystore k.jks"),
    ("ldapsearch", "ldapsearch -x -D cn=app -w ‹{A14}› -b dc=example"),
    ("SQL", "CREATE USER app IDENTIFIED BY '‹{P14}›'"),
    ("SQL", "ALTER ROLE app WITH PASSWORD '‹{P14}›';"),
    ("redis.conf", "requirepass ‹{A24}›"),
    ("netrc", "machine api.example.org login app password ‹{A16}›"),
    ("npmrc", "//registry.npmjs.org/:_authToken=‹npm_{A36}›"),
    ("npmrc", "//npm.example.org/:_password=‹{b24}›"),
    ("docker config", r#"{"auths":{"https://index.docker.io/v1/":{"auth":"‹{b32}›"}}}"#),
    ("XML", "<password>‹{A14}›</password>"),
    ("web.config", r#"<add key="SmtpPassword" value="‹{A14}›" />"#),
    ("Kubernetes", "    token: ‹{b40}›"),
    ("log sentence", "login with passphrase: ‹{A20}› succeeded"),
    ("private key", "-----BEGIN RSA PRIVATE KEY-----\n‹{b64}\n{b64}\n{b64}\n{b40}==›\n-----END RSA PRIVATE KEY-----"),
    ("private key", "-----BEGIN OPENSSH PRIVATE KEY-----\n‹{b70}\n{b70}\n{b36}›\n-----END OPENSSH PRIVATE KEY-----"),
    ("private key", "key: -----BEGIN EC PRIVATE KEY-----\\n‹{b64}\\n{b64}›\\n-----END EC PRIVATE KEY-----\\n"),
    ("service account", r#"{"type":"service_account","private_key":"-----BEGIN PRIVATE KEY-----\n‹{b64}\n{b64}›\n-----END PRIVATE KEY-----\n"}"#),
    ("PGP", "-----BEGIN PGP PRIVATE KEY BLOCK-----\n\n‹{b64}\n{b64}\n{b30}›\n-----END PGP PRIVATE KEY BLOCK-----"),
    ("PuTTY", "PuTTY-User-Key-File-3: ssh-ed25519\nPrivate-Lines: 1\n‹{b48}›"),
];
